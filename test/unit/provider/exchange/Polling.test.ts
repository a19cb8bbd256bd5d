/** Polling of a provider's work while the provider fails. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { type JobError, ProviderFailed, ProviderRateLimited } from "../../../../shared/contract/JobError.ts"
import * as Polling from "../../../../shared/provider/exchange/Polling.ts"

const failed = (reason: ProviderFailed["reason"]) =>
  new ProviderFailed({ provider: "p", reason, status: null, retryAfterMs: null })

const limited = (retryAfterMs: number | null) => new ProviderRateLimited({ provider: "p", retryAfterMs })

/** Finished work whose polls fail for `forMs` milliseconds; returns the times of the polls. */
const poll = (forMs: number, error: JobError) =>
  Effect.gen(function*() {
    const looks: Array<number> = []
    const begun = yield* Clock.currentTimeMillis
    const look = Effect.gen(function*() {
      const passed = (yield* Clock.currentTimeMillis) - begun
      looks.push(passed)
      return passed < forMs ? yield* error : Option.some(Effect.succeed("done"))
    })
    const fiber = yield* Effect.forkChild(Polling.untilEnded(look, 5_000))
    yield* TestClock.adjust("30 minutes")
    return { looks, exit: yield* Fiber.await(fiber) }
  })

const minutes = (count: number) => count * 60_000

describe("paid work at a provider", () => {
  it.effect.each([failed("unreachable"), failed("status"), failed("cut"), limited(null)])(
    "is polled on after five minutes of failures: %s",
    (error) =>
      Effect.gen(function*() {
        const { exit, looks } = yield* poll(minutes(5), error)
        assert.deepStrictEqual(exit, Exit.succeed("done"))
        assert.isBelow(looks.length, 30)
      })
  )

  it.effect("is polled after the provider's retry time, at most a minute", () =>
    Effect.gen(function*() {
      const soon = yield* poll(1, limited(20_000))
      assert.deepStrictEqual(soon.looks, [0, 20_000])
      const late = yield* poll(1, limited(minutes(60)))
      assert.deepStrictEqual(late.looks, [0, minutes(1)])
    }))

  it.effect("fails if the provider stays unreachable, and sooner if its answers say nothing", () =>
    Effect.gen(function*() {
      const away = yield* poll(Infinity, failed("unreachable"))
      assert.deepStrictEqual(away.exit, Exit.fail(failed("unreachable")))
      assert.isAbove(away.looks.at(-1) ?? 0, minutes(9))
      for (const reason of ["error", "malformed"] as const) {
        const { exit, looks } = yield* poll(Infinity, failed(reason))
        assert.deepStrictEqual(exit, Exit.fail(failed(reason)))
        assert.lengthOf(looks, 6)
      }
    }))

  it.effect("fails at once if the provider rejects the poll", () =>
    Effect.gen(function*() {
      const { exit, looks } = yield* poll(Infinity, failed("credentials"))
      assert.deepStrictEqual(exit, Exit.fail(failed("credentials")))
      assert.lengthOf(looks, 1)
    }))
})
