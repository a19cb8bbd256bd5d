/** Metrics of the process: event loop and memory, read at each scrape or export. */
import { Effect, Layer } from "effect"
import { monitorEventLoopDelay, performance } from "node:perf_hooks"
import { memoryLimit } from "../bounds/MemoryLimit.ts"
import * as Metrics from "../telemetry/Metrics.ts"

/** The sampling interval, and the period of the reported percentile, in milliseconds. */
const resolution = 20
const windowMs = 10_000

export const layer = Layer.effectDiscard(Effect.gen(function*() {
  const delays = monitorEventLoopDelay({ resolution })
  delays.enable()
  let lateSeconds = 0
  const timer = setInterval(() => {
    // a sample includes the interval itself
    lateSeconds = Math.max(0, delays.percentile(99) / 1e9 - resolution / 1_000)
    delays.reset()
  }, windowMs).unref()
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      clearInterval(timer)
      delays.disable()
    })
  )
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
