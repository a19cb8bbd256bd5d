/** A tenant with few jobs beside one with nine hundred. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { fairness } from "../../figures/Fairness.ts"

it.live("quiet tenants barely wait beside a noisy one, and no slot except the reserve is idle meanwhile", () =>
  Effect.gen(function*() {
    const report = yield* fairness
    yield* Effect.logInfo(report)
    assert.isAbove(report.quietJobs, 50)
    // in the order of arrival, they would wait for half of the noisy jobs; `npm run figures` judges the exact times
    assert.isAtMost(report.p95, report.tookMs / 8)
    // 0.95 and more on an otherwise idle machine, as with any order
    assert.isAtLeast(report.busy, 0.7)
  }))
