/** Results that are fetched from where a provider has them, on bad days of that host. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { FetchRefused, type GuardedFetch } from "../../../../shared/provider/transport/GuardedFetch.ts"
import * as ProviderResult from "../../../../shared/provider/transport/ProviderResult.ts"
import * as VideoFile from "../../../../shared/provider/call/VideoFile.ts"

const bytes = new Uint8Array([1, 2, 3])

/** How a fetch ends where that is refused for a time, and how often it was tried. */
const fetched = Effect.fnUntraced(function*(reason: FetchRefused["reason"], forMs: number) {
  let tries = 0
  const begun = yield* Clock.currentTimeMillis
  const guard: GuardedFetch["Service"] = {
    fetch: Effect.fnUntraced(function*() {
      tries++
      const passed = (yield* Clock.currentTimeMillis) - begun
      return passed < forMs ? yield* new FetchRefused({ reason }) : { bytes, mediaType: "" }
    }),
    dispatcher: () => assert.fail("something sends by itself")
  }
  const endpoint = { name: "p", model: "m", provider: { protocol: "dashscope", baseUrl: "https://p.example" } } as const
  const url = new URL("https://p.example/a.mp4")
  const fiber = yield* Effect.forkChild(ProviderResult.fetch(guard, endpoint, url, VideoFile.bounds))
  yield* TestClock.adjust("10 minutes")
  return { exit: yield* Fiber.await(fiber), tries }
})

describe("a video that is there", () => {
  it.effect("is fetched in the end where its host is away for a minute", () =>
    Effect.gen(function*() {
      for (const reason of ["unreachable", "time"] as const) {
        assert.deepStrictEqual((yield* fetched(reason, 60_000)).exit, Exit.succeed(bytes))
      }
    }))

  it.effect("is given up where its host stays away, sooner where that has no such file, and at once where it may not be", () =>
    Effect.gen(function*() {
      for (const [reason, times] of [["unreachable", 9], ["status", 4], ["address", 1], ["size", 1]] as const) {
        const { exit, tries } = yield* fetched(reason, Infinity)
        assert.isTrue(Exit.hasFails(exit))
        assert.strictEqual(tries, times, reason)
      }
    }))
})
