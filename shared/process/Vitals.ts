/** How the process itself is: its event loop and its memory, read whenever metrics are asked for. */
import { Effect, Layer } from "effect"
import { monitorEventLoopDelay, performance } from "node:perf_hooks"
import { memoryLimit } from "../bounds/MemoryLimit.ts"
import * as Metrics from "../telemetry/Metrics.ts"

/** How often timers are looked at, and over how long delays are told of, in milliseconds. */
const resolution = 20
const windowMs = 10_000

export const layer = Layer.effectDiscard(Effect.gen(function*() {
  const delays = monitorEventLoopDelay({ resolution })
  delays.enable()
  let late = 0
  const look = setInterval(() => {
    // what is measured is the whole time between two looks
    late = Math.max(0, delays.percentile(99) / 1e9 - resolution / 1_000)
    delays.reset()
  }, windowMs).unref()
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      clearInterval(look)
      delays.disable()
    })
  )
  let before = performance.eventLoopUtilization()
  yield* Metrics.observe(Metrics.eventLoopDelay(), () => late)
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
