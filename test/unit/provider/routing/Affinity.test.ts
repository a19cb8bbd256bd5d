/** Which of several targets gets the requests of a session, and when another one does. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { parse } from "../../../../shared/catalogue/Catalogue.ts"
import { markOf } from "../../../../shared/provider/dialects/conversation/Signature.ts"
import { routeOf } from "../../../../shared/provider/routing/Route.ts"
import { accountOf } from "../../../../shared/provider/transport/Endpoint.ts"
import { answers, Scripted, status, streams } from "./Scripted.ts"

const catalogue = `
providers:
  a: { protocol: local, retry: { times: 0 }, breaker: { minimumCalls: 1, lastCalls: 1 } }
  b: { protocol: local, retry: { times: 0 } }
models:
  chat: { workload: chat, sticky: session, targets: [{ provider: a }, { provider: b }] }
  uneven: { workload: chat, sticky: session, targets: [{ provider: a, weight: 3 }, { provider: b }] }
`

const bodyOf = (session: number) => ({ messages: [{ role: "user", content: `Session ${session}` }] })
const sessions = Array.from({ length: 300 }, (_, index) => index)

/** The provider that answers each session. */
const answerers = Effect.fnUntraced(function*(scripted: Scripted, of: ReadonlyArray<number>, model = "chat") {
  return yield* Effect.forEach(
    of,
    (session) =>
      Effect.map(
        scripted.request(model, { body: bodyOf(session) }),
        (outcome) =>
          outcome.kind === "answered" ? outcome.headers["x-gateway-provider"] : assert.fail(outcome.error.message)
      )
  )
})

/** The sessions whose target is this one. */
const sessionsOf = Effect.fnUntraced(function*(scripted: Scripted, provider: string, model = "chat") {
  const chosen = yield* answerers(scripted, sessions, model)
  return sessions.filter((session) => chosen[session] === provider)
})

describe("a conversation with reasoning that only one account can read", () => {
  const ordered = `
providers:
  a: { protocol: local, retry: { times: 0 } }
  b: { protocol: local, retry: { times: 0 }, breaker: { minimumCalls: 1, lastCalls: 1 } }
models:
  chat: { workload: chat, targets: [{ provider: a }, { provider: b, priority: 1 }] }
`
  const endpoint = { name: "b", provider: { protocol: "local" }, model: "chat" } as const
  const body = { messages: [{ role: "assistant", reasoning: `${markOf(accountOf(endpoint, undefined))}c2ln` }] }

  it.effect("is answered by that account, unless its circuit is open", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(ordered)
      yield* scripted.request("chat", { body })
      assert.deepStrictEqual(scripted.calls(), ["b/chat"])
      scripted.behave("b/chat", status(500))
      yield* scripted.request("chat", { body })
      assert.deepStrictEqual(scripted.calls(), ["b/chat", "a/chat"])
      yield* scripted.request("chat", { body })
      assert.deepStrictEqual(scripted.calls(), ["a/chat"])
    }))

  it.effect("is answered by the first target if no target has the account", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(ordered)
      yield* scripted.request("chat", { body: { messages: [{ reasoning: `${markOf("0123456789ab")}c2ln` }] } })
      assert.deepStrictEqual(scripted.calls(), ["a/chat"])
    }))
})

describe("a session", () => {
  it.effect("stays at its target, and sessions are distributed by weight", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const first = yield* answerers(scripted, sessions, "uneven")
      assert.closeTo(first.filter((name) => name === "a").length, 225, 30)
      assert.deepStrictEqual(yield* answerers(scripted, sessions, "uneven"), first)
    }))

  it.effect("leaves its target while that is down, is then answered under the model's name, and returns", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const moved = yield* sessionsOf(scripted, "a")
      scripted.behave("a/chat", status(500))
      yield* answerers(scripted, moved.slice(0, 1))
      scripted.received.splice(0)
      yield* answerers(scripted, moved)
      assert.lengthOf(scripted.received, moved.length)
      assert.isTrue(scripted.received.every(({ answersAs, name }) => name === "b/chat" && answersAs === "chat"))
      scripted.behave("a/chat", answers())
      // the second one probes the target, whose circuit then closes by steps
      for (let times = 0; times < 2; times++) {
        const { outcome } = yield* scripted.timed("chat", { body: bodyOf(moved[0]!) })
        assert.deepInclude(outcome, { kind: "answered" })
      }
      assert.deepStrictEqual(yield* sessionsOf(scripted, "a"), moved)
    }))

  const fill = Effect.fnUntraced(function*(scripted: Scripted, session: number, requests: number, model: string) {
    scripted.received.splice(0)
    for (const name of ["a", "b"]) scripted.behave(`${name}/${model}`, streams(60_000))
    const fibers = yield* Effect.forEach(
      Array.from({ length: requests }),
      () => Effect.forkChild(scripted.request(model, { body: bodyOf(session) }), { startImmediately: true })
    )
    const calls = scripted.calls()
    yield* Effect.forEach(fibers, Fiber.interrupt)
    return { a: calls.filter((name) => name.startsWith("a")).length, of: calls.length }
  })

  it.effect("leaves a target that is a third fuller than the others, by weight, and not one with few calls", () =>
    Effect.gen(function*() {
      const scripted = yield* Scripted.make(catalogue)
      const [session] = yield* sessionsOf(scripted, "a")
      assert.deepStrictEqual(yield* fill(scripted, session!, 8, "chat"), { a: 8, of: 8 })
      // four sevenths of the calls make it a third fuller
      const { a, of } = yield* fill(scripted, session!, 700, "chat")
      assert.strictEqual(of, 700)
      assert.closeTo(a, 400, 2)
      const [other] = yield* sessionsOf(scripted, "a", "uneven")
      // of five parts, a may have 3 · 4/3 = 4
      assert.closeTo((yield* fill(scripted, other!, 500, "uneven")).a, 400, 2)
      // the calls that have ended count no more
      assert.deepStrictEqual(yield* fill(scripted, session!, 8, "chat"), { a: 8, of: 8 })
    }))
})

describe("a model's requests", () => {
  it.effect("keep to a target only where several of one priority cache prompts, unless the model says otherwise", () =>
    Effect.gen(function*() {
      const snapshot = yield* parse(
        "gateway.yaml",
        `
providers:
  one: { protocol: openai, baseUrl: "http://127.0.0.1:1/v1" }
  two: { protocol: anthropic, baseUrl: "http://127.0.0.1:2" }
  own: { protocol: local }
  keyed: { protocol: openai, baseUrl: "http://127.0.0.1:3/v1", options: { promptCacheKey: true } }
models:
  caching: { workload: chat, targets: [{ provider: own }, { provider: one }, { provider: two }] }
  freely: { workload: chat, sticky: none, targets: [{ provider: one }, { provider: two }] }
  users: { workload: chat, sticky: user, targets: [{ provider: own }, { provider: one }] }
  keyed: { workload: chat, targets: [{ provider: keyed }] }
  fallback: { workload: chat, sticky: session, targets: [{ provider: one }, { provider: two, priority: 1 }] }
  mixed: { workload: chat, targets: [{ provider: own }, { provider: one }] }
  vectors: { workload: embeddings, targets: [{ provider: one }, { provider: two }] }
`
      )
      const stickiness = [...snapshot.models.keys()].map((name) => [name, routeOf(snapshot, name)?.sticky])
      assert.deepStrictEqual(Object.fromEntries(stickiness), {
        caching: "session",
        freely: "none",
        users: "user",
        keyed: "session",
        fallback: "none",
        mixed: "none",
        vectors: "none"
      })
    }))
})
