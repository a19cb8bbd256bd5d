/** Limits and circuit breakers of video providers. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, ConfigProvider, Context, Deferred, Effect, Exit, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Catalogue, parse } from "../../../../shared/catalogue/Catalogue.ts"
import { type JobError, ProviderFailed, ProviderRateLimited } from "../../../../shared/contract/JobError.ts"
import { Limits } from "../../../../shared/limits/Limits.ts"
import { GuardedFetch } from "../../../../shared/provider/transport/GuardedFetch.ts"
import { SharedLimits } from "../../../../shared/provider/routing/SharedLimits.ts"
import { Upstream } from "../../../../shared/provider/transport/Upstream.ts"
import { LocalVideoEngine } from "../../../../shared/provider/call/VideoEngine.ts"
import { VideoProviders } from "../../../../shared/provider/routing/VideoProviders.ts"
import { secretsIn } from "../../../fixture/ProviderKey.ts"

/** One provider with these settings, and the times of its calls. */
const bench = Effect.fnUntraced(function*(settings: string) {
  const snapshot = yield* parse(
    "gateway.yaml",
    `providers: { p: { protocol: local, ${settings} } }\nmodels: { m: { workload: video, targets: [{ provider: p }] } }`
  )
  const unused = () => Effect.die("the engine is not asked here")
  const built = yield* Layer.build(VideoProviders.layer.pipe(Layer.provide([
    Layer.succeed(Catalogue, { current: () => snapshot }),
    Layer.succeed(LocalVideoEngine, { start: unused, follow: unused, cancel: unused }),
    Layer.succeed(Upstream, { exchange: unused }),
    GuardedFetch.layer,
    secretsIn({}),
    Layer.effect(SharedLimits, Limits).pipe(Layer.provide(Limits.layerMemory)),
    ConfigProvider.layer(ConfigProvider.fromUnknown({}))
  ])))
  const provider = (yield* Context.get(built, VideoProviders).forModel("m"))[0]
  assert.isDefined(provider)
  const asked: Array<number> = []
  const begin = (submit: Effect.Effect<void, JobError>, goOn: Effect.Effect<string, string>, timeoutMs = 60_000) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) =>
      provider.begin({
        owner: "key",
        until: now + timeoutMs,
        submit: Effect.andThen(Effect.map(Clock.currentTimeMillis, (now) => void asked.push(now)), submit),
        failureOf: (error: JobError) => error,
        follow: () => goOn
      }))
  return { asked, begin }
}, Effect.orDie)

const failed = new ProviderFailed({ provider: "p", reason: "status", status: 500, retryAfterMs: null })

describe("a video provider", () => {
  it.effect("runs no more videos at once than its limit", () =>
    Effect.gen(function*() {
      const { asked, begin } = yield* bench("limits: { concurrency: 1 }")
      const ended = yield* Deferred.make<string>()
      const first = yield* Effect.forkChild(begin(Effect.void, Deferred.await(ended)))
      const second = yield* Effect.forkChild(begin(Effect.void, Effect.fail("broken")))
      yield* TestClock.adjust("5 seconds")
      assert.lengthOf(asked, 1)
      yield* Deferred.succeed(ended, "done")
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* Fiber.join(first), Exit.succeed("done"))
      assert.deepStrictEqual(yield* Fiber.join(second), Exit.fail("broken"))
    }))

  it.effect("gets its slot back if a video is no longer followed here", () =>
    Effect.gen(function*() {
      const { begin } = yield* bench("limits: { concurrency: 1 }")
      const first = yield* Effect.forkChild(begin(Effect.void, Effect.never))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(first)
      const second = yield* Effect.forkChild(begin(Effect.void, Effect.succeed("done")))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(second), Exit.succeed("done"))
    }))

  it.effect("starts no more videos per minute than its limit", () =>
    Effect.gen(function*() {
      const { asked, begin } = yield* bench("limits: { requestsPerMinute: 2 }")
      const all = yield* Effect.forkChild(
        Effect.forEach([1, 2, 3], () => begin(Effect.void, Effect.succeed("done"), 120_000))
      )
      yield* TestClock.adjust("40 seconds")
      const hasty = yield* Effect.forkChild(Effect.flip(begin(Effect.void, Effect.succeed("done"), 5_000)))
      yield* TestClock.adjust("10 seconds")
      assert.deepInclude(yield* Fiber.join(hasty), { _tag: "Skipped", reason: "busy" })
      assert.lengthOf(asked, 2)
      yield* TestClock.adjust("20 seconds")
      yield* Fiber.join(all)
      assert.isAtLeast(asked[2] ?? 0, 60_000)
    }))

  it.effect("is skipped while its circuit is open, and then probed", () =>
    Effect.gen(function*() {
      const { asked, begin } = yield* bench("breaker: { minimumCalls: 3, openMs: 10000 }")
      const ask = Effect.flip(begin(Effect.fail(failed), Effect.never))
      for (let times = 0; times < 3; times++) assert.strictEqual(yield* ask, failed)
      assert.deepInclude(yield* ask, { _tag: "Skipped", reason: "resting" })
      assert.lengthOf(asked, 3)
      yield* TestClock.adjust("10 seconds")
      // failures after the start do not count
      assert.deepStrictEqual(yield* begin(Effect.void, Effect.fail("broken")), Exit.fail("broken"))
      assert.deepStrictEqual(yield* begin(Effect.void, Effect.succeed("done")), Exit.succeed("done"))
    }))

  it.effect("gets no calls for as long as it requests", () =>
    Effect.gen(function*() {
      const { asked, begin } = yield* bench("")
      const busy = new ProviderRateLimited({ provider: "p", retryAfterMs: 20_000 })
      assert.strictEqual(yield* Effect.flip(begin(Effect.fail(busy), Effect.never)), busy)
      const next = yield* Effect.forkChild(begin(Effect.void, Effect.succeed("done")))
      yield* TestClock.adjust("19 seconds")
      assert.lengthOf(asked, 1)
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(yield* Fiber.join(next), Exit.succeed("done"))
    }))
})
