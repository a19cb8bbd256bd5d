/** Periodic tasks run at common moments, and rarely while there is nothing to do. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Latch } from "effect"
import { TestClock } from "effect/testing"
import { every, everyWhile } from "../../../shared/bounds/MonotonicClock.ts"

/** The times of all runs so far, in milliseconds. */
const recorded = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  const times: Array<number> = []
  return { times, tick: () => void times.push(Number(clock.monotonicTimeNanosUnsafe()) / 1e6) }
})

describe("a periodic task", () => {
  it.effect("runs at multiples of its interval, whenever it was started", () =>
    Effect.gen(function*() {
      const { tick, times } = yield* recorded
      yield* TestClock.adjust(130)
      yield* every(200, tick)
      yield* TestClock.adjust(1_000)
      assert.deepStrictEqual(times, [200, 400, 600, 800, 1_000])
    }))

  it.effect("goes on after an error", () =>
    Effect.gen(function*() {
      const { tick, times } = yield* recorded
      yield* every(200, () => {
        tick()
        throw new Error("once")
      })
      yield* TestClock.adjust(600)
      assert.deepStrictEqual(times, [200, 400, 600])
    }))

  it.effect("runs rarely without work, and often from its first interval with work on", () =>
    Effect.gen(function*() {
      const { tick, times } = yield* recorded
      const work = Latch.makeUnsafe(false)
      yield* everyWhile(work, 200, 1_000, tick)
      yield* TestClock.adjust(2_100)
      assert.deepStrictEqual(times.splice(0), [1_000, 2_000])
      work.openUnsafe()
      yield* TestClock.adjust(900)
      assert.deepStrictEqual(times.splice(0), [2_200, 2_400, 2_600, 2_800, 3_000])
      work.closeUnsafe()
      yield* TestClock.adjust(2_000)
      // the last one had begun to wait
      assert.deepStrictEqual(times, [3_200, 4_000, 5_000])
    }))
})
