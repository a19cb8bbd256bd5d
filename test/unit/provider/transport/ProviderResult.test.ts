/** Fetching results from a provider's host while that host fails. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { FetchRefused, type GuardedFetch } from "../../../../shared/provider/transport/GuardedFetch.ts"
import * as ProviderResult from "../../../../shared/provider/transport/ProviderResult.ts"
import * as VideoFile from "../../../../shared/provider/call/VideoFile.ts"

const bytes = new Uint8Array([1, 2, 3])

/** Fetches a result that is refused for `forMs` milliseconds; returns the exit and the number of tries. */
const fetchResult = Effect.fnUntraced(function*(reason: FetchRefused["reason"], forMs: number) {
  let tries = 0
  const begun = yield* Clock.currentTimeMillis
  const guard: GuardedFetch["Service"] = {
    fetch: Effect.fnUntraced(function*() {
      tries++
      const passed = (yield* Clock.currentTimeMillis) - begun
      return passed < forMs ? yield* new FetchRefused({ reason }) : { bytes, mediaType: "" }
    }),
    post: () => assert.fail("unexpected post"),
    dispatcher: () => assert.fail("unexpected use of the dispatcher")
  }
  const endpoint = { name: "p", model: "m", provider: { protocol: "dashscope", baseUrl: "https://p.example" } } as const
  const url = new URL("https://p.example/a.mp4")
  const fiber = yield* Effect.forkChild(ProviderResult.fetch(guard, endpoint, url, VideoFile.bounds))
  yield* TestClock.adjust("10 minutes")
  return { exit: yield* Fiber.await(fiber), tries }
})

describe("a finished video", () => {
  it.effect("is fetched even if its host is unreachable for a minute", () =>
    Effect.gen(function*() {
      for (const reason of ["unreachable", "time"] as const) {
        assert.deepStrictEqual((yield* fetchResult(reason, 60_000)).exit, Exit.succeed(bytes))
      }
    }))

  it.effect("fails after nine tries at an unreachable host, four at a missing file, and at once if the URL is forbidden", () =>
    Effect.gen(function*() {
      for (const [reason, times] of [["unreachable", 9], ["status", 4], ["address", 1], ["size", 1]] as const) {
        const { exit, tries } = yield* fetchResult(reason, Infinity)
        assert.isTrue(Exit.hasFails(exit))
        assert.strictEqual(tries, times, reason)
      }
    }))
})
