/**
 * What a client and the provider see when a provider breaks in a documented way, for a model with a fallback: the scenarios of
 * Failover Bench (https://github.com/failoverbench/failoverbench) with its checks, and others.
 *
 * `npm run failover` takes the bench's own times, about three minutes; otherwise they are short.
 */
import { assert, describe, it } from "@effect/vitest"
import { events } from "../../fixture/client/ChatClient.ts"
import type { Behaviour, Received } from "../../fixture/provider/FakeProvider.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { eventsIn } from "../../fixture/nats/UsageEvents.ts"
import {
  inTime,
  outage,
  retryAfter,
  thinkingFirstTokenMs,
  times,
  untilNext
} from "../../fixture/provider/FailoverTimes.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const words = Array.from({ length: 60 }, (_, index) => `word${index + 1}`)
const text = words.join(" ")

const spare = "spare-upstream"
const stubborn = "stubborn-upstream"

/** The name of each scenario is that of its model, at the gateway and at the provider. */
const scenarios = [
  "limited-once",
  "limited",
  "failed-once",
  "overloaded",
  "reset-once",
  "silent",
  "late",
  "processing",
  "thinking",
  "damaged",
  "damaged-word",
  "damaged-call",
  "too-long",
  "refused",
  "cut",
  "cut-in-a-word",
  "stalled",
  "unterminated",
  "flapping",
  "accounted",
  "refused-to-continue"
] as const
type Scenario = typeof scenarios[number] | "cut-beside-a-stubborn-one"

const timeouts = `{ firstByteMs: ${times.firstByteMs}, firstTokenMs: ${times.firstTokenMs} }`
/** The provider of each scenario that needs limits or a circuit of its own. With short limits, a busy machine would fail any other. */
const providerOf: Partial<Record<Scenario, string>> = {
  silent: "wall",
  late: "wall",
  processing: "wall",
  thinking: "thinker",
  stalled: "staller",
  flapping: "flapping"
}

const breaker = `{ openMs: ${outage.openMs}, maxOpenMs: ${outage.maxOpenMs} }`

const modelOf = (name: Scenario, fallback: string) =>
  `  ${name}: { workload: chat, continuation: true, contextWindow: 8192, fallbacks: [${fallback}], ` +
  `targets: [{ provider: ${providerOf[name] ?? "patient"}, continues: assistant, ` +
  "price: { outputPerMillion: 1000000 } }] }"

const shared = sharedGateway({
  providers: (baseUrl) => `
  wall: { protocol: openai, baseUrl: "${baseUrl}", timeouts: ${timeouts}, retry: { budget: 1 } }
  thinker: { protocol: openai, baseUrl: "${baseUrl}", timeouts: { firstTokenMs: ${thinkingFirstTokenMs} } }
  staller: { protocol: openai, baseUrl: "${baseUrl}", timeouts: { idleMs: ${times.idleMs} }, retry: { budget: 1 } }
  patient: { protocol: openai, baseUrl: "${baseUrl}", retry: { budget: 1 } }
  flapping:
    protocol: openai
    baseUrl: "${baseUrl}"
    retry: { budget: 1, baseMs: ${outage.baseMs} }
    breaker: ${breaker}`,
  models: `
${scenarios.map((name) => modelOf(name, "spare")).join("\n")}
${modelOf("cut-beside-a-stubborn-one", "stubborn")}
  spare:
    workload: chat
    contextWindow: 100000
    targets: [{ provider: patient, model: ${spare}, continues: assistant, price: { outputPerMillion: 2000000 } }]
  stubborn: { workload: chat, targets: [{ provider: patient, model: ${stubborn} }] }
  shadowed: { workload: chat, shadow: { model: shadow, share: 1 }, targets: [{ provider: patient }] }
  shadow: { workload: chat, targets: [{ provider: patient, model: shadow-upstream, price: { perRequest: 3 } }] }
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

const behave = (model: string, ...behaviours: ReadonlyArray<Behaviour>) =>
  shared().provider.behaveInTurn(model, ...behaviours)

/** From now on. */
const behaveAlways = (model: string, behaviour: Behaviour) => shared().provider.behave(behaviour, { model })

/** The calls to a model since the start. */
const callsTo = (model: string): ReadonlyArray<Received> =>
  shared().provider.requests.filter(({ json }) => (json as { readonly model: string }).model === model)

/** The whole answer after this number of calls to the first target, and one to the fallback if that has to answer. */
const isRescuedBy = async (model: Scenario, calls: number, from: "itself" | "fallback", withinMs = 0) => {
  const before = callsTo(spare).length
  const { error: _, ...answer } = await inTime(() => ask(model), withinMs)
  const name = from === "itself" ? model : spare
  assert.deepStrictEqual(answer, { status: 200, text, models: [name], tokens: 60, isDone: true })
  assert.lengthOf(callsTo(model), calls)
  assert.lengthOf(callsTo(spare), before + (from === "itself" ? 0 : 1))
}

/** The tokens that the gateway estimates for this number of words that a client has got: one for every four bytes. */
const estimated = (count: number): number => Math.ceil(Buffer.byteLength(`${words.slice(0, count).join(" ")} `) / 4)

/** The tokens of the rest, which begins with a space. */
const restAfter = (count: number): number => words.length - count + 1

/** The whole answer, of which another call has continued what came after this number of words. */
const isContinued = async (model: Scenario, after: number, withinMs = 0) => {
  const { error, ...answer } = await inTime(() => ask(model), withinMs)
  const tokens = estimated(after) + restAfter(after)
  assert.deepStrictEqual(answer, { status: 200, text, models: [model], tokens, isDone: true })
  assert.isUndefined(error)
}

const metered = async (model: string) => {
  const found = await eventually(
    async () => (await eventsIn(shared().nats)).filter((event) => event.model === model),
    ({ length }) => length > 0
  )
  return found[0]!
}

describe("Failover Bench: a provider", { timeout: 180_000 }, () => {
  it("S01 answers 429 with a retry-after once: it is called again after that", async () => {
    behave("limited-once", { kind: "status", status: 429, headers: { "retry-after": `${retryAfter}` } })
    await isRescuedBy("limited-once", 2, "itself")
    const [first, second] = callsTo("limited-once")
    assert.isAtLeast(second!.receivedAt - first!.receivedAt, 1_000 * retryAfter)
  })

  it("S02 goes on to answer 429: the next target answers after one retry, which waits", async () => {
    behaveAlways("limited", { kind: "status", status: 429 })
    await isRescuedBy("limited", 2, "fallback")
    const [first, second] = callsTo("limited")
    assert.isAtLeast(second!.receivedAt - first!.receivedAt, 1_000)
  })

  it("S03 answers 500 once: it is called again", async () => {
    behave("failed-once", { kind: "status", status: 500 })
    await isRescuedBy("failed-once", 2, "itself")
  })

  it("S04 goes on to answer 503: the next target answers after one retry", async () => {
    behaveAlways("overloaded", { kind: "status", status: 503 })
    await isRescuedBy("overloaded", 2, "fallback")
  })

  it("S05 resets a connection: it is called again", async () => {
    behave("reset-once", { kind: "reset" })
    await isRescuedBy("reset-once", 2, "itself")
  })

  it("S06 does not respond: the next target answers after one timeout", async () => {
    behaveAlways("silent", { kind: "silent", forMs: times.silentMs })
    await isRescuedBy("silent", 1, "fallback", times.firstByteMs)
  })

  it("S07 sends headers but no token in time: the next target answers", async () => {
    behaveAlways("late", { kind: "hold", after: 0, forMs: times.lateMs })
    await isRescuedBy("late", 1, "fallback", times.firstTokenMs)
  })

  it("S08 cuts its answer after 40 of 60 words: it is asked for the rest", async () => {
    behave("cut", { kind: "cut", after: 41 })
    await isContinued("cut", 40)
    assert.lengthOf(callsTo("cut"), 2)
  })

  it("S09 falls silent after 20 words: another target continues, and both calls are paid for", async () => {
    const before = callsTo(spare).length
    behaveAlways("stalled", { kind: "cut", after: 21, forMs: times.stallMs })
    await isContinued("stalled", 20, times.idleMs)
    assert.deepStrictEqual([callsTo("stalled").length, callsTo(spare).length], [1, before + 1])
    const event = await metered("stalled")
    const costUsd = estimated(20) + 2 * restAfter(20)
    assert.deepInclude(event, { outcome: "success", attempts: 2, repeatedCalls: 1, costUsd })
    assert.strictEqual(event.usage!.outputTokens, estimated(20) + restAfter(20))
  })

  it("S10 sends a damaged chunk: it is left out", async () => {
    behave("damaged", { kind: "malformed", after: 10, isRepeated: true })
    await isRescuedBy("damaged", 1, "itself")
  })

  it("S11 ends a stream without its terminator: the answer is complete at once, with its usage", async () => {
    behave("unterminated", { kind: "unterminated" })
    const answer = await inTime(() => ask("unterminated"))
    assert.deepInclude(answer, { text, models: ["unterminated"], tokens: 60 })
    assert.isUndefined(answer.error)
  })

  it("S12 rejects a request that is too long: a target with a larger context window answers", async () => {
    const error = { code: "context_length_exceeded", message: "This model's maximum context length is 8192 tokens." }
    behaveAlways("too-long", { kind: "status", status: 400, error })
    await isRescuedBy("too-long", 1, "fallback")
  })

  it("S13 refuses a request for its content: the client gets its reason, and no other target is called", async () => {
    const reason = { code: "content_policy_violation", message: "Your request was rejected by our safety system." }
    const before = callsTo(spare).length
    behaveAlways("refused", { kind: "status", status: 400, error: reason })
    const { error, status } = await ask("refused")
    assert.strictEqual(status, 400)
    assert.deepInclude(error, reason)
    assert.deepStrictEqual([callsTo("refused").length, callsTo(spare).length], [1, before])
  })

  it("S14 cuts its answer, and the fallback rejects prefills: the fallback is not asked for the rest", async () => {
    behave("cut-beside-a-stubborn-one", { kind: "cut", after: 41 })
    behaveAlways(stubborn, { kind: "prefill", is: "refused" })
    await isContinued("cut-beside-a-stubborn-one", 40)
    assert.deepStrictEqual([callsTo("cut-beside-a-stubborn-one").length, callsTo(stubborn).length], [2, 0])
  })

  it("S15 is down for a while: the next target answers meanwhile, and it answers soon after", async () => {
    behaveAlways("flapping", { kind: "status", status: 503 })
    /** The models that answer the next request. */
    const askNext = async () => {
      await untilNext()
      const { models = [], ...answer } = await ask("flapping")
      assert.deepInclude(answer, { status: 200, text, isDone: true })
      return models
    }
    for (let request = 0; request < outage.requests; request++) assert.deepStrictEqual(await askNext(), [spare])
    // The circuit opens at the fifth call, in the third request. Each later one probes at most once, and only after a while.
    const calls = callsTo("flapping")
    assert.isAtMost(calls.length, 5 + outage.requests - 3)
    for (const [at, probe] of calls.slice(5).entries()) {
      assert.isAtLeast(probe.receivedAt - calls[4 + at]!.receivedAt, outage.openMs)
    }
    behaveAlways("flapping", { kind: "answer" })
    let requests = 0
    await eventually(askNext, ([model]) => ++requests * outage.everyMs > outage.recoverMs || model === "flapping")
    for (let request = 0; request < 3; request++) assert.deepStrictEqual(await askNext(), ["flapping"])
  })

  it("S16 fails, and another target answers: under its own name, with its usage, at its price", async () => {
    behaveAlways("accounted", { kind: "status", status: 503 })
    await isRescuedBy("accounted", 2, "fallback")
    const event = await metered("accounted")
    assert.deepInclude(event, { outcome: "success", providerModel: spare, attempts: 3, costUsd: 2 * 60 })
    assert.notProperty(event, "repeatedCalls")
    assert.deepInclude(event.usage, { outputTokens: 60 })
  })
})

describe("a provider", () => {
  it("that sends an empty piece and comments, but no token in time, is late", async () => {
    behave("processing", { kind: "hold", after: 1, comment: "PROCESSING" })
    await isRescuedBy("processing", 1, "fallback", times.firstTokenMs)
  })

  it("that pauses after its first content is not late", async () => {
    // the start of the message, and a word
    behave("thinking", { kind: "hold", after: 2, forMs: times.thinkingMs })
    await isRescuedBy("thinking", 1, "itself", times.thinkingMs)
  })

  it("that cuts its answer in the middle of an event is asked for the rest", async () => {
    behave("cut-in-a-word", { kind: "cut", after: 7, bytes: 20 })
    await isContinued("cut-in-a-word", 6)
  })

  it("that damages a piece of text loses that piece, which is counted", async () => {
    behave("damaged-word", { kind: "malformed", after: 4 })
    const { error, isDone, text: arrived } = await ask("damaged-word")
    assert.deepStrictEqual([error, isDone, arrived], [undefined, true, text.replace("word4 ", "")])
    assert.lengthOf(callsTo("damaged-word"), 1)
    const metrics = await (await fetch(`http://127.0.0.1:${shared().workers[0]!.port}/metrics`)).text()
    assert.match(metrics, /gateway_provider_skipped_chunks_total\{[^}]*provider="patient"[^}]*\} [1-9]/)
  })

  it("that damages a tool's arguments fails", async () => {
    behave("damaged-call", { kind: "malformed", after: 3 })
    const { error, isDone } = await ask("damaged-call", { tools })
    assert.deepStrictEqual([error, isDone], ["upstream_error", false])
  })

  it("that refuses to continue an answer does not hide the first error", async () => {
    behave("refused-to-continue", { kind: "cut", after: 7 })
    behaveAlways("refused-to-continue", { kind: "prefill", is: "refused" })
    behave(spare, { kind: "prefill", is: "refused" })
    const answer = await ask("refused-to-continue")
    const begun = `${words.slice(0, 6).join(" ")} `
    assert.deepInclude(answer, { text: begun, error: "upstream_error", isDone: false })
  })
})

describe("a request with a shadow", () => {
  it("is answered by its own model, while the shadow's call is metered by itself", async () => {
    const { provider } = shared()
    behave("shadow-upstream", { kind: "silent" })
    const answer = await ask("shadowed")
    assert.deepInclude(answer, { status: 200, text, models: ["shadowed"] })
    // also after the client has got its answer
    await provider.until(() => callsTo("shadow-upstream").length === 1)
    provider.release()
    const [own, copy] = [await metered("shadowed"), await metered("shadow")]
    assert.deepInclude(own, { model: "shadowed", providerModel: "shadowed", outcome: "success", costUsd: null })
    assert.deepInclude(copy, { key: "shadow", providerModel: "shadow-upstream", outcome: "success", costUsd: 3 })
    assert.notStrictEqual(own.key, copy.key)
    assert.lengthOf(callsTo("shadowed"), 1)
  })
})
