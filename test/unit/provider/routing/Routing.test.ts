/** Which provider gets a request, in which order targets are tried, and what follows a failure. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ProviderFailed, ProviderTimeout } from "../../../../shared/contract/JobError.ts"
import { answers, fails, type Outcome, rateLimited, rejected, Scripted, status, tooLong } from "./Scripted.ts"

const catalogue = `
providers:
  a: { protocol: local, breaker: { enabled: false }, limits: { adaptive: false } }
  b: { protocol: local, breaker: { enabled: false }, limits: { adaptive: false } }
  c: { protocol: local, breaker: { enabled: false }, limits: { adaptive: false } }
  paid: { protocol: local, idempotent: false }
models:
  single: { workload: chat, targets: [{ provider: a, model: m }] }
  pair: { workload: chat, targets: [{ provider: a, model: m, priority: 0 }, { provider: b, model: m, priority: 1 }] }
  weighted: { workload: chat, targets: [{ provider: a, model: m, weight: 3 }, { provider: b, model: m }] }
  sticky:
    workload: chat
    sticky: user
    targets: [{ provider: a, model: m, weight: 2 }, { provider: b, model: m }, { provider: c, model: m }]
  falling: { workload: chat, targets: [{ provider: a, model: m }], fallbacks: [second, third] }
  second: { workload: chat, targets: [{ provider: b }, { provider: a, model: m }], fallbacks: [fourth] }
  third: { workload: chat, targets: [{ provider: c, model: x }] }
  fourth: { workload: chat, targets: [{ provider: c }] }
  small: { workload: chat, contextWindow: 8000, targets: [{ provider: a }], fallbacks: [smaller, same, huge] }
  smaller: { workload: chat, contextWindow: 4000, targets: [{ provider: b }] }
  same: { workload: chat, targets: [{ provider: b, model: small }, { provider: c, contextWindow: 8000 }] }
  huge: { workload: chat, targets: [{ provider: c }, { provider: a, model: x, contextWindow: 9000, priority: 1 }] }
  costly: { workload: chat, targets: [{ provider: a }], fallbacks: [paying] }
  paying: { workload: chat, targets: [{ provider: paid }] }
`

const answered = (outcome: Outcome) =>
  outcome.kind === "answered" ? outcome.headers : assert.fail(outcome.error.message)
const failure = (outcome: Outcome) => outcome.kind === "failed" ? outcome.error : assert.fail("it was answered")

const many = <A>(count: number, effect: Effect.Effect<A>) => Effect.forEach(Array.from({ length: count }), () => effect)

describe("a request goes", () => {
  it.effect("to a target of the first priority while that succeeds, and the answer says so", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      for (const outcome of yield* many(20, scripted.request("pair"))) {
        assert.deepStrictEqual(answered(outcome), {
          "x-gateway-provider": "a",
          "x-gateway-attempts": "1",
          "x-gateway-queue-ms": "0"
        })
      }
    }))

  it.effect("to targets of the same priority in proportion to their weights", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      yield* many(2_000, scripted.request("weighted"))
      assert.closeTo(scripted.calls().filter((name) => name === "a/m").length, 1_500, 100)
    }))

  it.effect("to the same target for the same user, and otherwise by weight", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const of = Effect.fnUntraced(function*(user: number, body: object = { user: `user ${user}` }) {
        return answered(yield* scripted.request("sticky", { body }))["x-gateway-provider"]
      })
      const users = Array.from({ length: 600 }, (_, index) => index)
      const first = yield* Effect.forEach(users, (user) => of(user))
      assert.closeTo(first.filter((name) => name === "a").length, 300, 50)
      assert.closeTo(first.filter((name) => name === "b").length, 150, 40)
      assert.deepStrictEqual(yield* Effect.forEach(users, (user) => of(user)), first)
      // the user field of messages
      const messages = yield* Effect.forEach(users, (user) => of(user, { metadata: { user_id: `user ${user}` } }))
      assert.deepStrictEqual(messages, first)

      // only users of the failing target move, and they return afterwards
      scripted.behave("b/m", status(503, 20_000))
      const without = yield* Effect.forEach(users, (user) => of(user))
      for (const [index, name] of first.entries()) {
        if (name !== "b") assert.strictEqual(without[index], name)
      }
      assert.closeTo(without.filter((name) => name === "a").length, 400, 50)
      scripted.behave("b/m", answers())
      assert.deepStrictEqual(yield* Effect.forEach(users, (user) => of(user)), first)
    }))

  it.effect("to any target by weight if the model is sticky but the request names no user", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      yield* many(400, scripted.request("sticky"))
      assert.closeTo(scripted.calls().filter((name) => name === "a/m").length, 200, 50)
    }))

  it.effect("to different targets for users with the same name from different keys", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const tenants = Array.from({ length: 100 }, (_, index) => `key ${index}`)
      yield* Effect.forEach(tenants, (tenant) => scripted.request("sticky", { tenant, body: { user: "1" } }))
      assert.lengthOf(new Set(scripted.calls()), 3)
    }))

  it.effect("to the fallbacks in order, each with its own fallbacks, and to no target twice", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(
        catalogue.replaceAll("adaptive: false }", "adaptive: false }, retry: { times: 0 }")
      )
      for (const name of ["a/m", "b/second", "c/fourth", "c/x"]) scripted.behave(name, status(500))
      assert.instanceOf(failure(yield* scripted.request("falling")), ProviderFailed)
      assert.deepStrictEqual(scripted.calls(), ["a/m", "b/second", "c/fourth", "c/x"])
      scripted.behave("c/fourth", answers())
      assert.deepInclude(answered(yield* scripted.request("falling")), {
        "x-gateway-provider": "c",
        "x-gateway-attempts": "3"
      })
    }))

  it.effect("to no second worker if a provider of the model or its fallbacks may charge twice", () =>
    Effect.gen(function*() {
      const { isIdempotent } = yield* Scripted.make(catalogue)
      assert.deepStrictEqual(["falling", "costly", "paying", "none"].map(isIdempotent), [true, false, false, false])
    }))
})

describe("when a provider fails", () => {
  it.effect("briefly, it is called once more, because its cache may hold the prompt, and then the next", () =>
    Effect.gen(function*() {
      const failures = [status(500), status(503, 2_000), rateLimited(2_000), rateLimited(null)]
      for (const [index, failing] of failures.entries()) {
        const scripted = yield* Scripted.make(catalogue)
        scripted.behaveOnce("a/m", failing)
        const { outcome, tookMs } = yield* scripted.timed("pair")
        assert.deepInclude(answered(outcome), { "x-gateway-provider": "a", "x-gateway-attempts": "2" })
        const pauseMs = [0, 2_000, 2_000, 1_000][index]!
        assert.isAtLeast(tookMs, pauseMs + 200)
        assert.isAtMost(tookMs, pauseMs + 300)

        yield* many(20, scripted.request("pair"))
        scripted.calls()
        scripted.behave("a/m", failing)
        assert.deepInclude(answered((yield* scripted.timed("pair")).outcome), { "x-gateway-provider": "b" })
        assert.deepStrictEqual(scripted.calls(), ["a/m", "a/m", "b/m"])
      }
    }))

  it.effect("briefly, the next is called at once if the request cannot wait", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", status(500))
      const { outcome, tookMs } = yield* scripted.timed("pair", { timeoutMs: 100 })
      assert.deepInclude(answered(outcome), { "x-gateway-provider": "b", "x-gateway-attempts": "2" })
      assert.strictEqual(tookMs, 0)
    }))

  it.effect("for longer, the next provider is called at once, and the client sees no error", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const failures = [
        status(503, 20_000),
        rateLimited(20_000),
        fails((provider) => new ProviderTimeout({ provider, phase: "first byte" })),
        fails(ProviderFailed.malformed),
        fails((provider) => new ProviderFailed({ provider, reason: "credentials", status: 401, retryAfterMs: null })),
        fails((provider) => new ProviderFailed({ provider, reason: "unreachable", status: null, retryAfterMs: null }))
      ]
      for (const failing of failures) {
        scripted.behaveOnce("a/m", failing)
        const { outcome, tookMs } = yield* scripted.timed("pair")
        assert.deepInclude(answered(outcome), { "x-gateway-provider": "b", "x-gateway-attempts": "2" })
        assert.strictEqual(tookMs, 0)
      }
    }))

  it.effect("because of an invalid request, no other provider is called", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", rejected)
      const { outcome, tookMs } = yield* scripted.timed("pair")
      assert.deepInclude(failure(outcome), { _tag: "ProviderRejected", provider: "a", status: 400 })
      assert.deepStrictEqual([scripted.calls(), tookMs], [["a/m"], 0])
    }))

  it.effect("because of the gateway's key, that target is not called again", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const credentials = fails((provider) =>
        new ProviderFailed({ provider, reason: "credentials", status: 401, retryAfterMs: null })
      )
      scripted.behave("a/m", credentials)
      assert.deepInclude(failure((yield* scripted.timed("single")).outcome), { reason: "credentials" })
      assert.deepStrictEqual(scripted.calls(), ["a/m"])
      // but another target is, with a retry
      scripted.behaveOnce("b/m", status(500))
      assert.deepInclude(answered((yield* scripted.timed("pair")).outcome), { "x-gateway-attempts": "3" })
      assert.deepStrictEqual(scripted.calls(), ["a/m", "b/m", "b/m"])
    }))

  it.effect("because the request is too long, targets of a larger or unknown context window are called", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/small", tooLong)
      assert.deepInclude(answered((yield* scripted.timed("small")).outcome), { "x-gateway-provider": "c" })
      assert.deepStrictEqual(scripted.calls(), ["a/small", "c/huge"])
      // the first answer helps the client most
      scripted.behave("c/huge", tooLong)
      scripted.behave("a/x", status(503, 20_000))
      const { outcome } = yield* scripted.timed("small", { timeoutMs: 1_000 })
      assert.deepInclude(failure(outcome), { _tag: "ProviderRejected", provider: "a", code: "context_length_exceeded" })
      assert.deepStrictEqual(scripted.calls(), ["a/small", "c/huge", "a/x"])
      // a model without a larger target
      scripted.behave("b/smaller", tooLong)
      assert.deepInclude(failure(yield* scripted.request("smaller")), { provider: "b" })
      assert.deepStrictEqual(scripted.calls(), ["b/smaller"])
    }))

  it.effect("the first target answers under the model's name, every other under its own", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behaveOnce("a/m", status(500), status(503, 20_000))
      yield* scripted.timed("falling")
      assert.deepStrictEqual(
        scripted.received.map(({ answersAs, name }) => [name, answersAs]),
        [["a/m", "falling"], ["a/m", "falling"], ["b/second", "second"]]
      )
    }))

  it.effect("after its answer has started, no other provider is called", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      scripted.behave("a/m", (call, sink) =>
        Effect.suspend(() => {
          sink.start({ status: 200, contentType: "text/event-stream", headers: {} })
          return Effect.fail(
            new ProviderFailed({ provider: call.endpoint.name, reason: "cut", status: null, retryAfterMs: null })
          )
        }))
      const { outcome, tookMs } = yield* scripted.timed("pair")
      assert.deepInclude(outcome, { kind: "failed", started: true })
      assert.deepInclude(failure(outcome), { provider: "a", reason: "cut" })
      assert.deepStrictEqual([scripted.calls(), tookMs], [["a/m"], 0])
    }))
})
