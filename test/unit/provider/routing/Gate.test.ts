/** Requests wait for a provider's limits, its own or the catalogue's, until their deadline. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Tracer } from "effect"
import { TestClock } from "effect/testing"
import { Limits } from "../../../../shared/limits/Limits.ts"
import { LimitStore } from "../../../../shared/limits/LimitStore.ts"
import { TestStore } from "../../../fixture/calls/Replicas.ts"
import { answers, type Outcome, rateLimited, Scripted, status, streams } from "./Scripted.ts"

const catalogue = `
providers:
  a: { protocol: local, retry: { times: 0 } }
  b: { protocol: local, retry: { times: 0 } }
  three: { protocol: local, limits: { concurrency: 3 } }
  hundred: { protocol: local, limits: { concurrency: 100 } }
  ten: { protocol: local, retry: { times: 0 }, limits: { requestsPerMinute: 10 } }
  tokens: { protocol: local, limits: { tokensPerMinute: 3000 } }
models:
  single: { workload: chat, targets: [{ provider: a, model: m }] }
  single-b: { workload: chat, targets: [{ provider: b, model: m }] }
  pair: { workload: chat, targets: [{ provider: a, model: m }, { provider: b, model: m, priority: 1 }] }
  three: { workload: chat, targets: [{ provider: three }] }
  hundred: { workload: chat, targets: [{ provider: hundred }] }
  ten: { workload: chat, targets: [{ provider: ten }] }
  ten-or-b: { workload: chat, targets: [{ provider: ten }, { provider: b, priority: 1 }] }
  three-or-ten: { workload: chat, targets: [{ provider: three }, { provider: ten, priority: 1 }] }
  tokens: { workload: chat, targets: [{ provider: tokens }] }
`

const failure = (outcome: Outcome) => outcome.kind === "failed" ? outcome.error : assert.fail("it was answered")
const headers = (outcome: Outcome) => outcome.kind === "answered" ? outcome.headers : assert.fail(outcome.error.message)

/** `count` requests at the same time. */
const concurrently = (count: number, request: Effect.Effect<Outcome>) =>
  Effect.forEach(Array.from({ length: count }), () => Effect.forkChild(request))

/** A tracer, and the spans that it started. */
const tracing = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, tracer }
}

const count = (outcomes: ReadonlyArray<Outcome>, kind: Outcome["kind"]) =>
  outcomes.filter((outcome) => outcome.kind === kind).length

describe("a provider that answers 429", () => {
  it.effect("gets no calls for the time that it names; requests wait that long within their deadlines", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behaveOnce("a/m", rateLimited(10_000))
      assert.deepInclude(failure(yield* scripted.request("single")), { retryAfterMs: 10_000 })
      yield* TestClock.adjust("2 seconds")
      const waiting = yield* concurrently(20, scripted.request("single"))
      const hasty = yield* scripted.request("single", { timeoutMs: 5_000 })
      assert.deepInclude(failure(hasty), { _tag: "ProviderRateLimited", retryAfterMs: 8_000 })
      yield* TestClock.adjust("7 seconds")
      assert.lengthOf(scripted.calls(), 1)
      yield* TestClock.adjust("3 seconds")
      const outcomes = yield* Fiber.joinAll(waiting)
      assert.strictEqual(count(outcomes, "answered"), 20)
      assert.isAtLeast(Number(headers(outcomes[0]!)["x-gateway-queue-ms"]), 8_000)
    }))

  it.effect("without a time gets no calls for a second", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behaveOnce("a/m", rateLimited(null))
      yield* scripted.request("single")
      const { outcome, tookMs } = yield* scripted.timed("single")
      assert.strictEqual(outcome.kind, "answered")
      assert.isAtLeast(tookMs, 1_000)
      assert.isAtMost(tookMs, 1_250)
    }))

  it.effect("gets calls again in time although the time of day is set back", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behaveOnce("a/m", rateLimited(1_000))
      yield* TestClock.adjust("1 minute")
      yield* scripted.request("single")
      yield* TestClock.setTime(30_000)
      const { outcome, tookMs } = yield* scripted.timed("single")
      assert.strictEqual(outcome.kind, "answered")
      assert.isAtMost(tookMs, 1_250)
    }))

  it.effect("is skipped while another target is available", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behaveOnce("a/m", rateLimited(10_000))
      const outcomes = yield* Effect.forEach(Array.from({ length: 10 }), () => scripted.request("pair"))
      assert.strictEqual(count(outcomes, "answered"), 10)
      assert.lengthOf(scripted.calls().filter((name) => name === "a/m"), 1)
      // the other target fails, so that waiting is better
      scripted.behave("b/m", status(500))
      const { outcome, tookMs } = yield* scripted.timed("pair")
      assert.strictEqual(headers(outcome)["x-gateway-provider"], "a")
      assert.isAtLeast(tookMs, 10_000)
    }))

  it.effect("loses none of its turns to requests that another target answers", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behaveOnce("a/m", rateLimited(1_000))
      yield* scripted.request("pair")
      yield* TestClock.adjust("2 seconds")
      yield* scripted.request("single")
      // it accepts one call in ten seconds
      scripted.behaveOnce("a/m", rateLimited(10_000))
      const others = yield* concurrently(10, scripted.request("pair"))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(count(yield* Fiber.joinAll(others), "answered"), 10)
      const { outcome, tookMs } = yield* scripted.timed("single")
      assert.strictEqual(headers(outcome)["x-gateway-provider"], "a")
      assert.isAtMost(tookMs, 10_500)
    }))

  it.effect("is not waited for if another target's circuit may be closed earlier", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behaveOnce("a/m", rateLimited(10_000))
      scripted.behave("b/m", status(500))
      yield* Effect.forEach(Array.from({ length: 5 }), () => scripted.request("single-b"))
      yield* scripted.request("pair", { timeoutMs: 100 })
      scripted.behave("b/m", answers())
      const { outcome, tookMs } = yield* scripted.timed("pair")
      assert.strictEqual(headers(outcome)["x-gateway-provider"], "b")
      assert.isAtMost(tookMs, 1_000)
    }))

  it.effect("repeatedly is called at the rate that it was seen to accept", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      // accepts ten calls in every ten seconds
      let window = 0
      let taken = 0
      let refused = 0
      scripted.behave("a/m", (call, sink) =>
        Effect.clockWith((clock) => {
          const now = Math.floor(clock.currentTimeMillisUnsafe() / 10_000)
          if (now !== window) [window, taken] = [now, 0]
          if (++taken <= 10) return answers()(call, sink)
          refused++
          return rateLimited((now + 1) * 10_000 - clock.currentTimeMillisUnsafe())(call, sink)
        }))
      let answered = 0
      const asking = yield* Effect.forkChild(Effect.forever(Effect.gen(function*() {
        yield* Effect.sleep("500 millis")
        const request = Effect.map(scripted.request("single"), ({ kind }) => kind === "answered" && answered++)
        yield* Effect.forkChild(request)
      })))
      yield* TestClock.adjust("10 minutes")
      yield* Fiber.interrupt(asking)
      // of 1,200 requests for 600 places, nearly all places are used and few requests rejected
      assert.isAtLeast(answered, 480)
      assert.isAtMost(refused, 120)
    }))
})

describe("a limit of the catalogue", () => {
  it.effect("of concurrent calls makes further requests wait their turn", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("three/three", streams(1_000))
      const fibers = yield* concurrently(9, scripted.request("three"))
      yield* TestClock.adjust("500 millis")
      for (let second = 0; second < 3; second++) {
        assert.lengthOf(scripted.calls(), 3)
        yield* TestClock.adjust("1 second")
      }
      yield* TestClock.adjust("2 seconds")
      const outcomes = yield* Fiber.joinAll(fibers)
      assert.strictEqual(count(outcomes, "answered"), 9)
      const waitedMs = outcomes.map((outcome) => Number(headers(outcome)["x-gateway-queue-ms"]))
      assert.deepStrictEqual(waitedMs.map((ms) => Math.round(ms / 1_000)), [0, 0, 0, 1, 1, 1, 2, 2, 2])
    }))

  it.effect("of concurrent calls releases the slots of failed and cancelled calls", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("three/three", status(400))
      for (const answer of [status(500), streams(60_000), streams(60_000)]) {
        scripted.behave("three/three", answer)
        const fibers = yield* concurrently(9, scripted.request("three", { timeoutMs: 0 }))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interruptAll(fibers)
      }
      scripted.calls()
      scripted.behave("three/three", answers())
      yield* TestClock.adjust("10 seconds")
      const outcomes = yield* Fiber.joinAll(
        yield* concurrently(3, Effect.delay(scripted.request("three"), 1)).pipe(
          Effect.tap(TestClock.adjust("1 second"))
        )
      )
      assert.strictEqual(count(outcomes, "answered"), 3)
    }))

  it.effect("of requests per minute rejects a request whose turn comes too late, with the time of its turn", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const fibers = yield* concurrently(15, scripted.request("ten"))
      yield* TestClock.adjust("1 second")
      const outcomes = yield* Fiber.joinAll(fibers)
      assert.strictEqual(count(outcomes, "answered"), 10)
      const refused = failure(outcomes.find(({ kind }) => kind === "failed")!)
      assert.strictEqual(refused._tag, "ProviderRateLimited")
      assert.closeTo(refused._tag === "ProviderRateLimited" ? refused.retryAfterMs ?? 0 : 0, 61_500, 200)
      yield* TestClock.adjust("40 seconds")
      const late = yield* concurrently(15, scripted.request("ten"))
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(count(yield* Fiber.joinAll(late), "answered"), 10)
    }))

  it.effect("admits a request at its deadline if there is room", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const fibers = yield* concurrently(2, scripted.request("ten", { timeoutMs: -10 }))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(count(yield* Fiber.joinAll(fibers), "answered"), 2)
    }))

  it.effect("sends excess requests to the next target at once", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const fibers = yield* concurrently(30, scripted.request("ten-or-b"))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(count(yield* Fiber.joinAll(fibers), "answered"), 30)
      const calls = scripted.calls()
      assert.lengthOf(calls.filter((name) => name === "ten/ten-or-b"), 10)
      assert.lengthOf(calls.filter((name) => name === "b/ten-or-b"), 20)
    }))

  it.effect("at every target makes requests wait for the first with room", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("three/three-or-ten", streams(5_000))
      const fibers = yield* concurrently(16, scripted.request("three-or-ten"))
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(count(yield* Fiber.joinAll(fibers), "answered"), 16)
      const calls = scripted.calls()
      assert.lengthOf(calls.filter((name) => name === "three/three-or-ten"), 6)
    }))

  it.effect("of tokens counts actual usage, not reservations", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("tokens/tokens", answers(10, { inputTokens: 20, outputTokens: 10 }))
      // reserves 2,000
      const request = scripted.request("tokens", { body: { max_tokens: 2_000 - 10 } })
      for (let round = 0; round < 10; round++) {
        const fibers = yield* concurrently(1, request)
        yield* TestClock.adjust("15 seconds")
        assert.strictEqual(count(yield* Fiber.joinAll(fibers), "answered"), 1)
      }
      scripted.behave("tokens/tokens", answers(10, { inputTokens: 4_000, outputTokens: 0 }))
      const fibers = yield* concurrently(2, request)
      yield* TestClock.adjust("15 seconds")
      assert.strictEqual(count(yield* Fiber.joinAll(fibers), "answered"), 1)
    }))

  it.effect("records a span for a wait only", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const { spans, tracer } = tracing()
      scripted.behave("three/three", streams(1_000))
      const fibers = yield* concurrently(4, Effect.withTracer(scripted.request("three"), tracer))
      yield* TestClock.adjust("3 seconds")
      yield* Fiber.joinAll(fibers)
      const waits = spans.filter(({ name }) => name === "wait for three")
      // the first request fetches a lease, which has only three slots for the four requests
      assert.isAtMost(waits.length, 4)
      const last = waits.at(-1)
      assert.strictEqual(last?.attributes.get("gen_ai.provider.name"), "three")
      assert.strictEqual(
        last?.status._tag === "Ended" && last.status.endTime - last.status.startTime > 900_000_000n,
        true
      )

      // part of a larger limit stays on lease after its first use
      yield* scripted.request("hundred")
      spans.length = 0
      yield* Effect.withTracer(scripted.request("hundred"), tracer)
      assert.deepStrictEqual(spans.map(({ name }) => name), ["chat hundred"])
    }))
})

describe("the span of a call", () => {
  it.effect("says why the call ended", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const { spans, tracer } = tracing()
      scripted.behaveOnce("a/m", status(503, 2_000))
      yield* Effect.withTracer(scripted.request("pair"), tracer)
      const told = spans.map(({ attributes, name, status }) => [
        name,
        Object.fromEntries(attributes),
        status._tag === "Ended" && status.exit._tag
      ])
      assert.deepStrictEqual(told, [
        ["chat m", {
          "gen_ai.operation.name": "chat",
          "gateway.operation": "chat.completions",
          "gen_ai.provider.name": "a",
          "gen_ai.request.model": "m",
          "gateway.provider.attempt": 1,
          "gateway.provider.reason": "first",
          "error.type": "ProviderFailed",
          "gateway.provider.failure": "status",
          "http.response.status_code": 503,
          "gateway.provider.retry_after_ms": 2_000
        }, "Failure"],
        ["chat m", {
          "gen_ai.operation.name": "chat",
          "gateway.operation": "chat.completions",
          "gen_ai.provider.name": "b",
          "gen_ai.request.model": "m",
          "gateway.provider.attempt": 2,
          "gateway.provider.reason": "fallback"
        }, "Success"]
      ])
    }))
})

describe("a provider whose limits cannot be read or written", () => {
  const away = Effect.map(TestStore.make(), (store) => {
    store.isAway = true
    return Limits.layerNoDeps.pipe(Layer.provide(Layer.succeed(LimitStore, store.service)))
  })
  // each kind of limit, and the only target or the last of two
  const rows = [["three"], ["hundred"], ["ten"], ["tokens"], ["three-or-ten"]] as const
  it.effect.each(rows)(
    "gets no call: %s waits until its deadline, and learns that the limit is unknown",
    ([model]) =>
      Effect.gen(function*() {
        const scripted = yield* Scripted.make(catalogue, yield* away)
        const request = yield* Effect.forkChild(scripted.request(model, { timeoutMs: 5_000 }))
        yield* TestClock.adjust("10 seconds")
        assert.deepInclude(failure(yield* Fiber.join(request)), { _tag: "LimitsUnavailable", retryAfterMs: 2_000 })
        assert.deepStrictEqual(scripted.calls(), [])
      })
  )

  it.effect("is replaced by a provider without limits", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue, yield* away)
      const request = yield* Effect.forkChild(scripted.request("ten-or-b"))
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual((yield* Fiber.join(request)).kind, "answered")
      assert.deepStrictEqual(scripted.calls(), ["b/ten-or-b"])
    }))
})
