/** Reports metrics of the process: event loop and memory, read at each scrape or export. */
import { Effect, Layer } from "effect"
import { monitorEventLoopDelay, performance } from "node:perf_hooks"
import { memoryLimit } from "../bounds/MemoryLimit.ts"
import { every } from "../bounds/MonotonicClock.ts"
import * as Metrics from "../telemetry/Metrics.ts"

/** The sampling interval, the period of the reported percentile, and how often the loop's utilization is checked, in milliseconds. */
const resolution = 20
const windowMs = 10_000
const checkMs = 2_000

/** Below this utilization timers are late by less than a sample, so the loop is not sampled: that would be an idle process's main cost. */
const busyShare = resolution / checkMs

export const layer = Layer.effectDiscard(Effect.gen(function*() {
  const delays = monitorEventLoopDelay({ resolution })
  let lateSeconds = 0
  let endsAt = 0
  let last = performance.eventLoopUtilization()
  yield* every(checkMs, () => {
    const now = performance.eventLoopUtilization()
    if (performance.eventLoopUtilization(now, last).utilization < busyShare) delays.disable()
    else delays.enable()
    last = now
    if (performance.now() < endsAt) return
    endsAt = performance.now() + windowMs
    // a sample includes the interval itself
    lateSeconds = Math.max(0, delays.percentile(99) / 1e9 - resolution / 1_000)
    delays.reset()
  })
  yield* Effect.addFinalizer(() => Effect.sync(() => delays.disable()))
  let before = performance.eventLoopUtilization()
  yield* Metrics.observe(Metrics.eventLoopDelay(), () => lateSeconds)
  yield* Metrics.observe(Metrics.eventLoopUtilization(), () => {
    const now = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(now, before)
    before = now
    return utilization
  })
  yield* Metrics.observe(Metrics.heapUsed(), () => process.memoryUsage().heapUsed)
  yield* Metrics.observe(Metrics.residentMemory(), () => process.memoryUsage.rss())
  const limit = memoryLimit()
  yield* Metrics.observe(Metrics.memoryLimit(), () => limit)
}))
