/** A tenant with few jobs beside one that has dumped nine hundred. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { fairness } from "../../figures/Fairness.ts"

it.live("quiet tenants wait a moment beside a noisy one, and no slot but the reserve stays idle for it", () =>
  Effect.gen(function*() {
    const report = yield* fairness
    yield* Effect.logInfo(report)
    assert.isAbove(report.quietJobs, 50)
    assert.isAtMost(report.p95, 200)
    // 95 % and more where nothing else is on the machine, as with any order
    assert.isAtLeast(report.busy, 0.85)
  }))
