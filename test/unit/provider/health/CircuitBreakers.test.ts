/** Circuit breakers per provider and model. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { TestClock } from "effect/testing"
import { randomFrom } from "../../../fixture/general/Random.ts"
import { answers, fails, type Outcome, rateLimited, rejected, Scripted, status, streams } from "../routing/Scripted.ts"
import { ProviderFailed } from "../../../../shared/contract/JobError.ts"

const catalogue = `
providers:
  a: { protocol: local, retry: { times: 0 }, limits: { adaptive: false } }
  b: { protocol: local, retry: { times: 0 }, breaker: { failureRate: 1, minimumCalls: 2, openMs: 4000, maxOpenMs: 10000 } }
  usual: { protocol: local }
  spare: { protocol: local }
  off: { protocol: local, retry: { times: 0 }, breaker: { enabled: false } }
models:
  single: { workload: chat, targets: [{ provider: a, model: m }] }
  other: { workload: chat, targets: [{ provider: a, model: o }] }
  pair: { workload: chat, targets: [{ provider: a, model: m }, { provider: b, model: m, priority: 1 }] }
  strict: { workload: chat, targets: [{ provider: b, model: m }] }
  usual: { workload: chat, targets: [{ provider: usual, model: m }, { provider: spare, model: s, priority: 1 }] }
  off: { workload: chat, targets: [{ provider: off }] }
`

const times = <A>(count: number, effect: Effect.Effect<A>) =>
  Effect.forEach(Array.from({ length: count }), () => effect)

const failure = (outcome: Outcome) => outcome.kind === "failed" ? outcome.error : assert.fail("it was answered")
const circuitOpen = (retryAfterMs: number) =>
  ({ _tag: "ProviderFailed", provider: "a", reason: "resting", retryAfterMs }) as const

/** The circuit of `a/m` in the metrics: 0 closed, 1 half open, 2 open. */
const reported = Effect.map(
  PrometheusMetrics.format(),
  (text) => /^gateway_provider_breaker_state\{provider="a",model="m"\} (\d)$/m.exec(text)?.[1]
)

describe("a circuit breaker", () => {
  it.effect("does not open with a success after four failures", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(500))
      yield* times(4, scripted.request("single"))
      scripted.behave("a/m", answers())
      yield* times(3, scripted.request("single"))
      assert.lengthOf(scripted.calls(), 7)
    }))

  it.effect("opens after five failures, and gives clients the time to wait", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(500))
      const outcomes = yield* times(20, scripted.request("single"))
      assert.lengthOf(scripted.calls(), 5)
      assert.deepInclude(failure(outcomes[4]!), { status: 500 })
      assert.deepInclude(failure(outcomes[5]!), circuitOpen(1_000))
      yield* TestClock.adjust("300 millis")
      assert.deepInclude(failure(yield* scripted.request("single")), circuitOpen(700))
      // another model of the same provider has a breaker of its own
      assert.strictEqual((yield* scripted.request("other")).kind, "answered")
    }))

  it.effect("lets a probe pass in time although the time of day is set back", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(500))
      yield* TestClock.adjust("1 minute")
      yield* times(5, scripted.request("single"))
      scripted.behave("a/m", answers())
      yield* TestClock.setTime(30_000)
      assert.deepInclude(failure(yield* scripted.request("single")), circuitOpen(1_000))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* scripted.request("single")).kind, "answered")
    }))

  it.effect("opens after half of the last 20 calls failed, not after fewer", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      yield* times(50, scripted.request("single"))
      scripted.behave("a/m", status(500))
      yield* times(9, scripted.request("single"))
      scripted.behave("a/m", answers())
      assert.strictEqual((yield* scripted.request("single")).kind, "answered")
      scripted.behave("a/m", status(500))
      yield* times(2, scripted.request("single"))
      scripted.behave("a/m", answers())
      assert.deepInclude(failure(yield* scripted.request("single")), circuitOpen(1_000))
    }))

  it.effect("ignores rate limits, invalid requests and clients that disconnect", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      for (const answer of [rejected, rateLimited(null), streams(60_000)]) {
        scripted.behave("a/m", answer)
        for (let round = 0; round < 10; round++) {
          const fiber = yield* Effect.forkChild(scripted.request("single", { timeoutMs: 0 }))
          yield* TestClock.adjust(1)
          yield* Fiber.interrupt(fiber)
        }
      }
      assert.lengthOf(scripted.calls(), 30)
      scripted.behave("a/m", answers())
      assert.strictEqual((yield* scripted.request("single")).kind, "answered")
    }))

  it.effect("sends requests to the next target without a call while open", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(500))
      const outcomes = yield* times(20, scripted.request("pair"))
      assert.isTrue(outcomes.every(({ kind }) => kind === "answered"))
      const calls = scripted.calls()
      assert.lengthOf(calls.filter((name) => name === "a/m"), 5)
      assert.lengthOf(calls.filter((name) => name === "b/m"), 20)
      // the skipped targets are reported after the failed call
      scripted.behave("b/m", status(503))
      assert.deepInclude(failure(yield* scripted.request("pair")), { provider: "b", status: 503 })
    }))

  it.effect("closes after one successful probe; meanwhile other requests skip the target", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(500))
      yield* times(5, scripted.request("single"))
      scripted.behave("a/m", answers(3_000))
      yield* TestClock.adjust("1 second")
      const probe = yield* Effect.forkChild(scripted.request("single"))
      yield* TestClock.adjust("1 second")
      for (const outcome of yield* times(5, scripted.request("single"))) {
        assert.deepInclude(failure(outcome), circuitOpen(1_000))
      }
      assert.lengthOf(scripted.calls(), 6)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* Fiber.join(probe)).kind, "answered")
      scripted.behave("a/m", answers())
      assert.isTrue((yield* times(5, scripted.request("single"))).every(({ kind }) => kind === "answered"))
    }))

  it.effect("is reported as open until an edit of the catalogue removes the target, or disables the breaker", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(500))
      yield* times(5, scripted.request("single"))
      assert.strictEqual(yield* reported, "2")
      for (
        const [from, to] of [
          // the provider stays, for the target of another model
          [/\{ provider: a, model: m \}/g, "{ provider: spare, model: m }"],
          [/a: \{ protocol: local,/g, "a: { protocol: local, breaker: { enabled: false },"]
        ] as const
      ) {
        yield* scripted.edit(catalogue.replace(from, to))
        assert.strictEqual(yield* reported, "0")
        yield* scripted.edit(catalogue)
        assert.strictEqual(yield* reported, "2")
      }
    }))

  it.effect("closes at the first byte of a probe's answer", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(500))
      yield* times(5, scripted.request("single"))
      scripted.behave("a/m", streams(60_000))
      yield* TestClock.adjust("1 second")
      const probe = yield* Effect.forkChild(scripted.request("single"))
      yield* TestClock.adjust(1)
      scripted.behave("a/m", answers())
      assert.isTrue((yield* times(5, scripted.request("single"))).every(({ kind }) => kind === "answered"))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(probe)).kind, "answered")
    }))

  it.effect("stays open twice as long after each failed probe, up to a maximum", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("b/m", status(500))
      yield* times(2, scripted.request("strict"))
      for (const restMs of [4_000, 8_000, 10_000, 10_000]) {
        yield* TestClock.adjust(restMs - 1)
        assert.deepInclude(failure(yield* scripted.request("strict")), { reason: "resting", retryAfterMs: 1 })
        yield* TestClock.adjust(1)
        assert.deepInclude(failure(yield* scripted.request("strict")), { status: 500 })
      }
    }))

  it.effect("is closed within 15 s of the provider's recovery from an outage of a minute, in 50 of 50 runs", () =>
    Effect.forEach(Array.from({ length: 50 }, (_, seed) => seed), (seed) =>
      Effect.gen(function*() {
        const random = randomFrom(seed)
        // each worker has circuits of its own, and gets some of the requests
        const workers = yield* Effect.forEach(
          Array.from({ length: 1 + seed % 4 }),
          () => Scripted.make(catalogue)
        )
        for (const worker of workers) worker.behave("usual/m", status(503))
        const from = yield* Clock.currentTimeMillis
        const recoversAt = from + 60_000
        let requests = 0
        let calls = 0
        let backAt: number | undefined
        while (backAt === undefined) {
          const now = yield* Clock.currentTimeMillis
          if (now >= recoversAt) { for (const worker of workers) worker.behave("usual/m", answers()) }
          else requests++
          const worker = workers[Math.floor(random() * workers.length)]!
          const request = yield* Effect.forkChild(worker.request("usual"))
          yield* TestClock.adjust(1_000 + random() * 3_000)
          const outcome = yield* Fiber.join(request)
          const used = worker.calls().filter((name) => name === "usual/m").length
          if (now < recoversAt) calls += used
          assert.strictEqual(outcome.kind, "answered")
          if (outcome.kind === "answered" && outcome.headers["x-gateway-provider"] === "usual") backAt = now
        }
        assert.isAtLeast(backAt, recoversAt)
        assert.isAtMost(backAt - recoversAt, 15_000)
        // two for each of the first three requests, then only probes
        if (workers.length === 1) assert.isAtMost(calls, Math.min(requests, 18))
      })))

  it.effect("that opens ends the retries of a request at once", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("usual/m", status(500))
      for (let round = 0; round < 2; round++) yield* scripted.timed("usual")
      scripted.calls()
      const { outcome, tookMs } = yield* scripted.timed("usual")
      assert.strictEqual(outcome.kind, "answered")
      assert.deepStrictEqual([scripted.calls(), tookMs], [["usual/m", "spare/s"], 0])
    }))

  it.effect("stays open for as long as the provider requests", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(503, 120_000))
      yield* times(5, scripted.request("single"))
      assert.deepInclude(failure(yield* scripted.request("single")), circuitOpen(120_000))
    }))

  it.effect("sends another probe after one that was cancelled or invalid", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(500))
      yield* times(5, scripted.request("single"))
      scripted.behave("a/m", answers(60_000))
      yield* TestClock.adjust("1 second")
      const gone = yield* Effect.forkChild(scripted.request("single"))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(gone)
      scripted.behave("a/m", rateLimited(null))
      assert.deepInclude(failure(yield* scripted.request("single", { timeoutMs: 0 })), { _tag: "ProviderRateLimited" })
      scripted.behave("a/m", () => Effect.die("a mistake of ours"))
      yield* Effect.exit(scripted.request("single"))
      scripted.behave("a/m", answers())
      assert.isTrue((yield* times(5, scripted.request("single"))).every(({ kind }) => kind === "answered"))
    }))

  it.effect("counts a failure in the middle of an answer", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", (call, sink) =>
        Effect.suspend(() => {
          sink.start({ status: 200, contentType: "text/event-stream", headers: {} })
          return fails((provider) => new ProviderFailed({ provider, reason: "cut", status: null, retryAfterMs: null }))(
            call,
            sink
          )
        }))
      yield* times(5, scripted.request("single"))
      assert.deepInclude(failure(yield* scripted.request("single")), circuitOpen(1_000))
    }))

  it.effect("can be disabled in the catalogue", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("off/off", status(500))
      yield* times(50, scripted.request("off"))
      assert.lengthOf(scripted.calls(), 50)
    }))

  it.effect("keeps its state after an edit of the catalogue", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(500))
      yield* times(5, scripted.request("single"))
      yield* scripted.edit(catalogue.replace("other:", "another:"))
      assert.deepInclude(failure(yield* scripted.request("single")), circuitOpen(1_000))
      yield* TestClock.adjust("1 second")
      scripted.behave("a/m", answers())
      assert.strictEqual((yield* scripted.request("single")).kind, "answered")
    }))
})
