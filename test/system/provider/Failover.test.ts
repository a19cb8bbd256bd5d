/** What a client and the provider see when a provider breaks in a documented way, for a model with a fallback. */
import { assert, describe, it } from "@effect/vitest"
import { events } from "../../fixture/client/ChatClient.ts"
import type { Behaviour, Received } from "../../fixture/provider/FakeProvider.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { eventsIn } from "../../fixture/nats/UsageEvents.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const text = "one two three four five six seven eight nine ten"
const spare = "spare-upstream"

/** The name of each scenario is that of its model, at the gateway and at the provider. */
const scenarios = [
  "limited-once",
  "limited",
  "failed-once",
  "overloaded",
  "reset-once",
  "silent",
  "late",
  "thinking",
  "damaged",
  "damaged-call",
  "too-long",
  "refused",
  "cut",
  "stalled",
  "unterminated",
  "refused-to-continue"
] as const
type Scenario = typeof scenarios[number]

const shared = sharedGateway({
  providers: (baseUrl) => `
  wall:
    protocol: openai
    baseUrl: "${baseUrl}"
    timeouts: { firstByteMs: 800, firstTokenMs: 800, idleMs: 2000 }
    retry: { budget: 1 }`,
  models: `
${
    scenarios.map((name) =>
      `  ${name}: { workload: chat, continuation: true, contextWindow: 8192, fallbacks: [spare], ` +
      "targets: [{ provider: wall, continues: assistant, price: { outputPerMillion: 1000000 } }] }"
    ).join("\n")
  }
  spare:
    workload: chat
    contextWindow: 100000
    targets: [{ provider: wall, model: ${spare}, continues: assistant, price: { outputPerMillion: 2000000 } }]
  shadowed: { workload: chat, shadow: { model: shadow, share: 1 }, targets: [{ provider: wall }] }
  shadow: { workload: chat, targets: [{ provider: wall, model: shadow-upstream, price: { perRequest: 3 } }] }
`
})

interface Chunk {
  readonly model: string
  readonly choices: ReadonlyArray<{ readonly delta: { readonly content?: string } }>
  readonly usage?: { readonly completion_tokens: number } | null
  readonly error?: { readonly code: string }
}

const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: { at: {} } } } }]

const ask = async (model: Scenario | "shadowed", more: object = {}) => {
  const body = { model, messages: [{ role: "user", content: text }], stream: true, ...more }
  const response = await shared().request({ ...body, stream_options: { include_usage: true } })
  if (response.status !== 200) {
    return { status: response.status, error: (await response.json() as { readonly error: object }).error }
  }
  const data: Array<string> = []
  for await (const event of events(response)) data.push(event)
  const chunks = data.filter((event) => event !== "[DONE]").map((event) => JSON.parse(event) as Chunk)
  return {
    status: 200,
    text: chunks.flatMap(({ choices = [] }) => choices.map(({ delta }) => delta.content ?? "")).join(""),
    models: [...new Set(chunks.flatMap(({ model = [] }) => model))],
    tokens: chunks.flatMap(({ usage }) => usage?.completion_tokens ?? [])[0],
    error: chunks.at(-1)?.error?.code,
    isDone: data.at(-1) === "[DONE]"
  }
}

const behave = (model: Scenario, ...behaviours: ReadonlyArray<Behaviour>) =>
  shared().provider.behaveInTurn(model, ...behaviours)

/** The calls to a model since the start. */
const callsTo = (model: string): ReadonlyArray<Received> =>
  shared().provider.requests.filter(({ json }) => (json as { readonly model: string }).model === model)

/** The whole answer of the first target after this number of calls to it. */
const isRescuedBy = async (model: Scenario, calls: number, from: "itself" | "fallback") => {
  const before = callsTo(spare).length
  const { error: _, ...answer } = await ask(model)
  const name = from === "itself" ? model : spare
  assert.deepStrictEqual(answer, { status: 200, text, models: [name], tokens: 10, isDone: true })
  assert.lengthOf(callsTo(model), calls)
  assert.lengthOf(callsTo(spare), before + (from === "itself" ? 0 : 1))
}

describe("when a provider", { timeout: 30_000 }, () => {
  it("is at its rate limit for a moment, the same target answers after its retry-after", async () => {
    behave("limited-once", { kind: "status", status: 429, headers: { "retry-after": "1" } })
    await isRescuedBy("limited-once", 2, "itself")
    const [first, second] = callsTo("limited-once")
    assert.isAtLeast(second!.closedAt! - first!.closedAt!, 1_000)
  })

  it("is at its rate limit for longer, the next target answers after one retry", async () => {
    shared().provider.behave({ kind: "status", status: 429 }, { model: "limited" })
    await isRescuedBy("limited", 2, "fallback")
  })

  it("fails once, the same target answers", async () => {
    behave("failed-once", { kind: "status", status: 500 })
    await isRescuedBy("failed-once", 2, "itself")
  })

  it("is overloaded, the next target answers under its own name, with its usage", async () => {
    shared().provider.behave({ kind: "status", status: 503 }, { model: "overloaded" })
    await isRescuedBy("overloaded", 2, "fallback")
  })

  it("resets a connection, the same target answers", async () => {
    behave("reset-once", { kind: "reset" })
    await isRescuedBy("reset-once", 2, "itself")
  })

  it("does not respond, the next target answers after one timeout", async () => {
    behave("silent", { kind: "silent" })
    await isRescuedBy("silent", 1, "fallback")
  })

  it("announces an answer but sends no token in time, the next target answers", async () => {
    behave("late", { kind: "hold", after: 1, comment: "PROCESSING" })
    await isRescuedBy("late", 1, "fallback")
  })

  it("pauses after its first content, it is not late", async () => {
    // the start of the message, and a word
    behave("thinking", { kind: "hold", after: 2, forMs: 1_000 })
    await isRescuedBy("thinking", 1, "itself")
  })

  it("damages a piece of text, the other pieces arrive", async () => {
    behave("damaged", { kind: "malformed", after: 4 })
    const { error, isDone, text: arrived } = await ask("damaged")
    assert.deepStrictEqual([error, isDone, arrived], [undefined, true, text.replace("four ", "")])
    assert.lengthOf(callsTo("damaged"), 1)
    const metrics = await (await fetch(`http://127.0.0.1:${shared().workers[0]!.port}/metrics`)).text()
    assert.match(metrics, /gateway_provider_skipped_chunks_total\{[^}]*provider="wall"[^}]*\} 1\n/)
  })

  it("damages a tool's arguments, the answer fails", async () => {
    behave("damaged-call", { kind: "malformed", after: 3 })
    const { error, isDone } = await ask("damaged-call", { tools })
    assert.deepStrictEqual([error, isDone], ["upstream_error", false])
  })

  it("cuts its answer, the same target continues it", async () => {
    behave("cut", { kind: "cut", after: 7, bytes: 20 })
    const { error, ...answer } = await ask("cut")
    assert.deepInclude(answer, { text, models: ["cut"], isDone: true })
    // 28 bytes of text count as seven tokens; a space and four words follow
    assert.deepStrictEqual([error, answer.tokens, callsTo("cut").length], [undefined, 12, 2])
  })

  it("stops sending in the middle of its answer, another target continues it, at the price of both", async () => {
    const before = callsTo(spare).length
    behave("stalled", { kind: "hold", after: 7 })
    const { error, ...answer } = await ask("stalled")
    assert.deepInclude(answer, { text, models: ["stalled"], isDone: true })
    assert.deepStrictEqual([error, answer.tokens], [undefined, 12])
    assert.deepStrictEqual([callsTo("stalled").length, callsTo(spare).length], [1, before + 1])
    const [event] = await eventually(
      async () => (await eventsIn(shared().nats)).filter(({ model }) => model === "stalled"),
      ({ length }) => length > 0,
      5_000
    )
    assert.deepInclude(event, { outcome: "success", attempts: 2, repeatedCalls: 1, costUsd: 7 + 5 * 2 })
    assert.strictEqual(event!.usage!.outputTokens, 12)
  })

  it("refuses to continue an answer, the client gets the first error", async () => {
    behave("refused-to-continue", { kind: "cut", after: 7 })
    shared().provider.behave({ kind: "prefill", is: "refused" }, { model: "refused-to-continue" })
    shared().provider.behaveInTurn(spare, { kind: "prefill", is: "refused" })
    const answer = await ask("refused-to-continue")
    assert.deepInclude(answer, { text: "one two three four five six ", error: "upstream_error", isDone: false })
  })

  it("ends a stream without its terminator, the answer is complete", async () => {
    behave("unterminated", { kind: "unterminated" })
    const { error, isDone, models, text: arrived, tokens } = await ask("unterminated")
    assert.deepStrictEqual([error, isDone, models, arrived, tokens], [undefined, false, ["unterminated"], text, 10])
  })

  it("rejects a request that is too long, a target with a larger context window answers", async () => {
    const error = { code: "context_length_exceeded", message: "This model's maximum context length is 8192 tokens." }
    behave("too-long", { kind: "status", status: 400, error })
    await isRescuedBy("too-long", 1, "fallback")
  })

  it("refuses a request for its content, the client gets its reason", async () => {
    const reason = { code: "content_policy_violation", message: "Your request was rejected by our safety system." }
    const before = callsTo(spare).length
    behave("refused", { kind: "status", status: 400, error: reason })
    const { error, status } = await ask("refused")
    assert.strictEqual(status, 400)
    assert.deepInclude(error, reason)
    assert.deepStrictEqual([callsTo("refused").length, callsTo(spare).length], [1, before])
  })
})

describe("a request with a shadow", { timeout: 30_000 }, () => {
  it("is answered by its own model, while the shadow's call is metered by itself", async () => {
    const { nats, provider } = shared()
    provider.behaveInTurn("shadow-upstream", { kind: "silent" })
    const answer = await ask("shadowed")
    assert.deepInclude(answer, { status: 200, text, models: ["shadowed"] })
    // also after the client has got its answer
    await provider.until(() => callsTo("shadow-upstream").length === 1)
    provider.release()
    const metered = await eventually(
      async () => (await eventsIn(nats)).filter(({ model }) => model.startsWith("shadow")),
      ({ length }) => length === 2,
      5_000
    )
    const [own, copy] = metered.toSorted(({ model }) => model === "shadowed" ? -1 : 1)
    assert.deepInclude(own, { model: "shadowed", providerModel: "shadowed", outcome: "success", costUsd: null })
    assert.deepInclude(copy, { key: "shadow", model: "shadow", providerModel: "shadow-upstream", costUsd: 3 })
    assert.notStrictEqual(own!.key, copy!.key)
    assert.lengthOf(callsTo("shadowed"), 1)
  })
})
