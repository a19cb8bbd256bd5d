/** Work at a provider that is asked how far it is, on bad days of the provider. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { type JobError, ProviderFailed, ProviderRateLimited } from "../../../../shared/contract/JobError.ts"
import * as Polling from "../../../../shared/provider/exchange/Polling.ts"

const failed = (reason: ProviderFailed["reason"]) =>
  new ProviderFailed({ provider: "p", reason, status: null, retryAfterMs: null })

const limited = (retryAfterMs: number | null) => new ProviderRateLimited({ provider: "p", retryAfterMs })

/** Work that has ended, at a provider that fails to say so for a time; and when it was asked. */
const followed = (forMs: number, error: JobError) =>
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

describe("work that is paid for", () => {
  it.effect.each([failed("unreachable"), failed("status"), failed("cut"), limited(null)])(
    "is not given up because its provider is away for five minutes: %s",
    (error) =>
      Effect.gen(function*() {
        const { exit, looks } = yield* followed(minutes(5), error)
        assert.deepStrictEqual(exit, Exit.succeed("done"))
        assert.isBelow(looks.length, 30)
      })
  )

  it.effect("is asked for when the provider wants it, and after a minute at the latest", () =>
    Effect.gen(function*() {
      const soon = yield* followed(1, limited(20_000))
      assert.deepStrictEqual(soon.looks, [0, 20_000])
      const late = yield* followed(1, limited(minutes(60)))
      assert.deepStrictEqual(late.looks, [0, minutes(1)])
    }))

  it.effect("is given up where the provider stays away, and sooner where it answers and has nothing to say", () =>
    Effect.gen(function*() {
      const away = yield* followed(Infinity, failed("unreachable"))
      assert.deepStrictEqual(away.exit, Exit.fail(failed("unreachable")))
      assert.isAbove(away.looks.at(-1) ?? 0, minutes(9))
      for (const reason of ["error", "malformed"] as const) {
        const { exit, looks } = yield* followed(Infinity, failed(reason))
        assert.deepStrictEqual(exit, Exit.fail(failed(reason)))
        assert.lengthOf(looks, 6)
      }
    }))

  it.effect("is given up at once where the provider refuses to speak of it", () =>
    Effect.gen(function*() {
      const { exit, looks } = yield* followed(Infinity, failed("credentials"))
      assert.deepStrictEqual(exit, Exit.fail(failed("credentials")))
      assert.lengthOf(looks, 1)
    }))
})
