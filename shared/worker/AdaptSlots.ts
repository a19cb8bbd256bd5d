/** Measures the strain of a worker's process while jobs run, and adapts its slots to it. */
import { Clock, Context, Effect, type Latch, type Scope } from "effect"
import { getHeapStatistics } from "node:v8"
import { memoryLimit } from "../bounds/MemoryLimit.ts"
import { monotonicMs } from "../bounds/MonotonicClock.ts"
import { leastSlots, type SlotLimit } from "./SlotLimit.ts"

/** Reads the used part of this process's memory, from 0 to 1: of its limit, or of the heap's if less of that is left. */
export const UsedMemory = Context.Reference<() => number>("shared/worker/AdaptSlots/UsedMemory", {
  defaultValue: () => {
    const limit = memoryLimit()
    return () => {
      const { heap_size_limit: most, used_heap_size: used } = getHeapStatistics()
      return Math.max(process.memoryUsage.rss() / limit, used / most)
    }
  }
})

/** The interval of the timer whose lateness is measured, in milliseconds, and how many of them make a measurement. */
const sampleMs = 250
const samples = 4

/** The jobs of a worker, and whether it has any. */
interface Load {
  readonly inFlight: () => number
  readonly working: Latch.Latch
}

/** Adapts a limit until the scope closes. An idle worker has no strain and no timer. */
export const adapt = Effect.fnUntraced(function*(
  limit: SlotLimit,
  { inFlight, working }: Load
): Effect.fn.Return<void, never, Scope.Scope> {
  if (limit.current <= leastSlots) return
  const now = monotonicMs(yield* Clock.Clock)
  const usedMemory = yield* UsedMemory
  const lateness = Effect.gen(function*() {
    const before = now()
    yield* Effect.sleep(sampleMs)
    return Math.max(0, now() - before - sampleMs)
  })
  const measure = Effect.gen(function*() {
    yield* working.await
    let lateMs = 0
    for (let count = 0; count < samples; count++) lateMs += (yield* lateness) / samples
    const before = limit.current
    const wasReduced = limit.isReduced
    const strain = { lateMs, memory: usedMemory() }
    limit.update(strain, inFlight(), now())
    const { current: slots, isReduced } = limit
    if (isReduced && !wasReduced) {
      yield* Effect.logWarning("fewer slots, because memory or the event loop is short", { ...strain, slots, before })
    } else if (wasReduced && !isReduced) yield* Effect.logInfo("all slots again", { slots })
  })
  yield* Effect.forkScoped(Effect.forever(measure))
})
