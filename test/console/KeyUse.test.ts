/** What the list of keys says of their use, and that many keys do not hold the console up. */
import { assert, describe, it } from "@effect/vitest"
import { useOf } from "../../services/console/KeyUse.ts"
import { zero } from "../../shared/usage/Counters.ts"

const row = (key: string, day: string, requests = 1) => ({ ...zero, key, day, requests, costUsd: requests / 4 })

describe("the use of a key", () => {
  it("is counted since the beginning of the month, and its last day since that of the rows", () => {
    const rows = [row("key_a", "2026-10-31", 7), row("key_a", "2026-11-01", 2), row("key_a", "2026-11-03", 4)]
    const use = useOf([...rows, row("key_b", "2026-10-30")], "2026-11-22")
    assert.deepStrictEqual(use("key_a"), { lastUsedOn: "2026-11-03", requestsThisMonth: 6, spentThisMonthUsd: 1.5 })
    assert.deepStrictEqual(use("key_b"), { lastUsedOn: "2026-10-30", requestsThisMonth: 0, spentThisMonthUsd: 0 })
    assert.deepStrictEqual(use("key_c"), { lastUsedOn: null, requestsThisMonth: 0, spentThisMonthUsd: 0 })
  })

  it("of two thousand keys on each of ninety days is told in a moment", () => {
    const keys = Array.from({ length: 2_000 }, (_, index) => `key_${index}`)
    const days = Array.from(
      { length: 90 },
      (_, index) =>
        `2026-${String(9 + Math.floor(index / 30)).padStart(2, "0")}-${String(index % 30 + 1).padStart(2, "0")}`
    )
    const rows = keys.flatMap((key) => days.map((day) => row(key, day)))
    const began = performance.now()
    const use = useOf(rows, "2026-11-30")
    for (const key of keys) assert.strictEqual(use(key).requestsThisMonth, 30)
    // nothing else is answered meanwhile; looking through all rows for each key took seven seconds
    assert.isBelow(performance.now() - began, 1_500)
  })
})
