/** The use of each key in the console's list of keys. */
import { assert, describe, it } from "@effect/vitest"
import { usageByKey } from "../../../services/console/handlers/KeyUse.ts"
import { emptyCounters } from "../../../shared/usage/Counters.ts"

describe("the use of a key", () => {
  it("is the sum of this month, with the day of the last use in any month", () => {
    const use = usageByKey(
      [{ ...emptyCounters, key: "key_a", requests: 6, costUsd: 1.5 }],
      new Map([["key_a", "2026-11-03"], ["key_b", "2026-10-30"]])
    )
    assert.deepStrictEqual(use("key_a"), { lastUsedOn: "2026-11-03", requestsThisMonth: 6, spentThisMonthUsd: 1.5 })
    assert.deepStrictEqual(use("key_b"), { lastUsedOn: "2026-10-30", requestsThisMonth: 0, spentThisMonthUsd: 0 })
    assert.deepStrictEqual(use("key_c"), { lastUsedOn: null, requestsThisMonth: 0, spentThisMonthUsd: 0 })
  })
})
