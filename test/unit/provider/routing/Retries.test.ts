/** Retries: which failures, after which pause and how often, without making a provider's outage worse. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Metric, Random } from "effect"
import { TestClock } from "effect/testing"
import type { Perform } from "../../../../shared/provider/call/Protocol.ts"
import * as Metrics from "../../../../shared/telemetry/Metrics.ts"
import { answers, fallible, type Outcome, rateLimited, Scripted, status } from "./Scripted.ts"

const provider = (name: string, settings = "") =>
  `  ${name}: { protocol: local, breaker: { enabled: false }, limits: { adaptive: false }${settings} }\n`

const catalogue = (settings = "") => `
providers:
${provider("a", settings)}${provider("b", settings)}${provider("never", ", retry: { times: 0 }")}
models:
  single: { workload: chat, targets: [{ provider: a }] }
  pair: { workload: chat, targets: [{ provider: a }, { provider: b, priority: 1 }] }
  never: { workload: chat, targets: [{ provider: never }] }
`

const failure = (outcome: Outcome) => outcome.kind === "failed" ? outcome.error : assert.fail("it was answered")

/** Fills the retry budget. */
const fillBudget = (scripted: Scripted, model = "single") =>
  Effect.forEach(Array.from({ length: 50 }), () => scripted.request(model))

describe("a transient failure", () => {
  it.effect("is retried after pauses that double, plus or minus a fifth", () =>
    Effect.gen(function*() {
      const pauses: Array<ReadonlyArray<number>> = []
      const scripted = yield* Scripted.make(catalogue(", retry: { times: 4, budget: 1 }"))
      for (let round = 0; round < 20; round++) {
        yield* fillBudget(scripted)
        scripted.received.length = 0
        scripted.behaveOnce("a/single", status(500), status(503), status(502), status(500))
        const { outcome } = yield* scripted.timed("single")
        assert.strictEqual(outcome.kind === "answered" && outcome.headers["x-gateway-attempts"], "5")
        const at = scripted.received.map(({ at }) => at)
        pauses.push(at.slice(1).map((each, index) => each - at[index]!))
      }
      for (const [index, meanMs] of [250, 500, 1_000, 2_000].entries()) {
        const these = pauses.map((each) => each[index]!)
        for (const pause of these) {
          assert.isAtLeast(pause, meanMs * 0.8)
          assert.isAtMost(pause, meanMs * 1.2)
        }
        assert.isAbove(Math.max(...these) - Math.min(...these), meanMs * 0.1)
      }
    }))

  it.effect("is not retried more often than the catalogue allows, nor after longer pauses", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue(", retry: { times: 3, baseMs: 1000, maxMs: 1500, budget: 1 }"))
      yield* fillBudget(scripted)
      scripted.behave("a/single", status(500))
      const { outcome, tookMs } = yield* scripted.timed("single")
      assert.deepInclude(failure(outcome), { _tag: "ProviderFailed", status: 500 })
      assert.deepStrictEqual(scripted.calls().slice(50), ["a/single", "a/single", "a/single", "a/single"])
      assert.isAtMost(tookMs, (1_000 + 1_500 + 1_500) * 1.2)
      scripted.behave("never/never", status(500))
      yield* scripted.timed("never")
      assert.deepStrictEqual(scripted.calls(), ["never/never"])
    }))

  it.effect("is retried at the same target once, then at every target, at most six times in all", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue(", retry: { times: 5, budget: 1 }"))
      yield* fillBudget(scripted)
      yield* fillBudget(scripted, "pair")
      for (const name of ["a/pair", "b/pair"]) scripted.behave(name, status(500))
      for (let round = 0; round < 10; round++) yield* scripted.request("pair", { timeoutMs: 0 })
      scripted.calls()
      yield* scripted.timed("pair")
      assert.deepStrictEqual(scripted.calls(), ["a/pair", "a/pair", "b/pair", "b/pair", "a/pair", "b/pair"])
    }))

  it.effect("is not retried if the pause would exceed the client's deadline", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue())
      scripted.behave("a/single", status(500))
      const { tookMs } = yield* scripted.timed("single", { timeoutMs: 199 })
      assert.deepStrictEqual([scripted.calls(), tookMs], [["a/single"], 0])
    }))
})

describe("a provider's retry-after", () => {
  it.effect("is obeyed if there is no other target and the deadline allows it", () =>
    Effect.gen(function*() {
      for (const failing of [rateLimited(7_000), status(503, 7_000)]) {
        const scripted = yield* Scripted.make(catalogue())
        scripted.behaveOnce("a/single", failing)
        const { outcome, tookMs } = yield* scripted.timed("single")
        assert.strictEqual(outcome.kind, "answered")
        assert.isAtLeast(tookMs, 7_000)
        assert.isAtMost(tookMs, 7_300)
      }
    }))

  it.effect("that exceeds the client's deadline goes to the client at once", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue())
      scripted.behave("a/single", rateLimited(31_000))
      const limited = yield* scripted.timed("single")
      assert.deepInclude(failure(limited.outcome), { _tag: "ProviderRateLimited", retryAfterMs: 31_000 })
      scripted.behave("a/single", status(503, 40_000))
      const failed = yield* scripted.timed("single")
      assert.deepInclude(failure(failed.outcome), { _tag: "ProviderFailed", status: 503, retryAfterMs: 40_000 })
      assert.deepStrictEqual([limited.tookMs, failed.tookMs], [0, 0])
      assert.lengthOf(scripted.calls(), 2)
    }))

  it.effect("does not delay calls to other targets", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue())
      yield* fillBudget(scripted, "pair")
      scripted.behave("a/pair", status(503, 20_000))
      scripted.behaveOnce("b/pair", status(500))
      const { outcome, tookMs } = yield* scripted.timed("pair")
      assert.strictEqual(outcome.kind === "answered" && outcome.headers["x-gateway-provider"], "b")
      assert.isAtMost(tookMs, 300)
    }))
})

describe("a failed call", () => {
  const retracts = Effect.fnUntraced(function*(failing: Perform) {
    const scripted = yield* Scripted.make(catalogue())
    scripted.behaveOnce("a/single", failing)
    const retractedAt: Array<number> = []
    const retract = Effect.map(Clock.currentTimeMillis, (now) => void retractedAt.push(now))
    yield* scripted.timed("single", { retract })
    return { retractedAt, retriedAt: scripted.received[1]?.at }
  })

  it.effect("is retracted before the wait for the next one if the provider has certainly done no work", () =>
    Effect.gen(function*() {
      for (const failing of [rateLimited(7_000), status(503, 7_000)]) {
        const { retractedAt, retriedAt } = yield* retracts(failing)
        assert.lengthOf(retractedAt, 1)
        assert.isAtLeast(retriedAt ?? 0, (retractedAt[0] ?? 0) + 7_000)
      }
    }))

  it.effect("is not retracted if the provider may have worked on it, or has begun an answer", () =>
    Effect.gen(function*() {
      const begins: Perform = (call, sink) => Effect.andThen(answers()(call, sink), rateLimited(1_000)(call, sink))
      for (const failing of [status(500), begins]) {
        assert.isEmpty((yield* retracts(failing)).retractedAt)
      }
    }))
})

describe("during a provider's outage", () => {
  const shares = [0.1, 0.4, 0.7, 1]
  it.effect.each(shares)(
    "with %s of the calls failing, there are at most 1.2 calls per request",
    (share) =>
      Effect.gen(function*() {
        const scripted = yield* Scripted.make(catalogue())
        scripted.behave("a/single", fallible(share))
        for (const requests of [20, 180]) {
          const fibers = yield* Effect.forEach(
            Array.from({ length: requests }),
            () => Effect.andThen(TestClock.adjust("100 millis"), Effect.forkChild(scripted.request("single")))
          )
          yield* TestClock.adjust("1 minute")
          yield* Fiber.joinAll(fibers)
          assert.isAtMost(scripted.calls().length, requests * 1.2)
        }
      })
  )

  it.effect("a full retry budget is used, and not exceeded", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue())
      yield* fillBudget(scripted)
      scripted.calls()
      scripted.behave("a/single", status(500))
      const fibers = yield* Effect.forEach(Array.from({ length: 100 }), () =>
        Effect.andThen(TestClock.adjust("100 millis"), Effect.forkChild(scripted.request("single"))))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.joinAll(fibers)
      const calls = scripted.calls().length
      assert.isAtMost(calls, 120)
      assert.isAtLeast(calls, 115)
    }))

  it.effect("retries are spread over time, and few after simultaneous failures", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue())
      yield* fillBudget(scripted)
      scripted.behaveOnce("a/single", ...Array.from({ length: 40 }, () => rateLimited(1_000)))
      scripted.received.length = 0
      const from = yield* Clock.currentTimeMillis
      const fibers = yield* Effect.forEach(
        Array.from({ length: 40 }),
        () => Effect.forkChild(scripted.request("single"))
      )
      yield* TestClock.adjust("1 minute")
      yield* Fiber.joinAll(fibers)
      const retries = scripted.received.slice(40).map(({ at }) => at - from)
      // what was saved up, and the share of these requests
      assert.isAtLeast(retries.length, 5)
      assert.isAtMost(retries.length, 5 + 40 * 0.15)
      // by chance, some may share a millisecond
      assert.isAtLeast(new Set(retries).size, retries.length - 2)
      assert.isAtLeast(Math.min(...retries), 1_000)
    }).pipe(Random.withSeed("spread")))

  it.effect("a late answer within the deadline succeeds", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue())
      scripted.behaveOnce("a/pair", status(500))
      scripted.behave("b/pair", answers(100_000))
      assert.strictEqual((yield* scripted.timed("pair")).outcome.kind, "answered")
    }))
})

describe("the count of fallbacks", () => {
  it.effect("counts only calls made because another provider failed", () =>
    Effect.gen(function*() {
      const counts = Effect.forEach(
        ["a", "b"],
        (name) => Effect.map(Metric.value(Metrics.fallbacks(name)), ({ count }) => Number(count))
      )
      const scripted = yield* Scripted.make(catalogue())
      const before = yield* counts
      yield* fillBudget(scripted)
      assert.deepStrictEqual(yield* counts, before)
      scripted.behaveOnce("a/pair", status(500), status(500))
      yield* scripted.timed("pair")
      assert.deepStrictEqual(scripted.calls().slice(50), ["a/pair", "a/pair", "b/pair"])
      assert.deepStrictEqual(yield* counts, [before[0]!, before[1]! + 1])
    }))
})
