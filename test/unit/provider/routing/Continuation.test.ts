/** Answers that break off and are continued: every chat dialect of clients, relayed and translated, at providers over HTTP. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, ConfigProvider, Context, Effect, Layer } from "effect"
import { Catalogue, parse } from "../../../../shared/catalogue/Catalogue.ts"
import type { Continues } from "../../../../shared/catalogue/Model.ts"
import { operationNamed } from "../../../../shared/contract/operations/operations.ts"
import type { Usage } from "../../../../shared/contract/Usage.ts"
import { Limits } from "../../../../shared/limits/Limits.ts"
import { LocalEngines } from "../../../../shared/provider/protocols/local/Local.ts"
import * as ClientDialects from "../../../../shared/provider/dialects/ClientDialects.ts"
import { ResultStore } from "../../../../shared/provider/call/ResultStore.ts"
import { Providers } from "../../../../shared/provider/routing/Providers.ts"
import { SharedLimits } from "../../../../shared/provider/routing/SharedLimits.ts"
import { GuardedFetch } from "../../../../shared/provider/transport/GuardedFetch.ts"
import type { Sink } from "../../../../shared/provider/transport/Sink.ts"
import { Upstream } from "../../../../shared/provider/transport/Upstream.ts"
import { type Answer, FakeProvider, type Question } from "../../../fixture/provider/FakeProvider.ts"
import { secretsIn } from "../../../fixture/ProviderKey.ts"

const whole = "one two three four five six seven eight nine ten"
const prompt = "Count: "

/** A request of each dialect, and how to read its stream. */
interface Client {
  readonly body: (more: object) => object
  readonly textOf: (event: Event) => string
  /** The ids in an event. */
  readonly idOf: (event: Event) => string | undefined
  /** The reasons why the answer ended in an event. */
  readonly reasonOf: (event: Event) => string | null | undefined
  readonly outputOf: (event: Event) => number | undefined
  readonly reason: string
  /** The kinds of events after the text. */
  readonly end: Array<string>
  readonly limit: object
}

/** The fields of all dialects' events that these tests look at. */
interface Event {
  readonly id?: string
  readonly responseId?: string
  readonly type?: string
  readonly object?: string
  readonly index?: number
  readonly message?: { readonly id: string }
  readonly sequence_number?: number
  readonly item_id?: string
  readonly item?: { readonly id: string }
  readonly response?: {
    readonly id: string
    readonly status: string
    readonly output: ReadonlyArray<{ readonly id: string; readonly content: ReadonlyArray<{ readonly text: string }> }>
    readonly usage: { readonly output_tokens: number } | null
  }
  readonly content_block?: { readonly type: string }
  readonly delta?: { readonly text?: string; readonly stop_reason?: string } | string
  readonly choices: ReadonlyArray<{
    readonly delta?: { readonly content?: string }
    readonly text?: string
    readonly finish_reason: string | null
  }>
  readonly candidates: ReadonlyArray<{
    readonly content: { readonly parts: ReadonlyArray<{ readonly text?: string }> }
    readonly finishReason?: string
  }>
  readonly usage?: { readonly completion_tokens?: number; readonly output_tokens?: number }
  readonly usageMetadata?: { readonly candidatesTokenCount: number }
}

/** A request that a provider received. */
interface Body {
  readonly messages: ReadonlyArray<object>
  readonly continue_final_message?: boolean
  readonly add_generation_prompt?: boolean
}

const messages = [{ role: "user", content: prompt }]

const clients: Readonly<Record<string, Client>> = {
  "chat.completions": {
    body: (more) => ({ model: "m", messages, stream: true, stream_options: { include_usage: true }, ...more }),
    textOf: ({ choices }) => choices[0]?.delta?.content ?? "",
    idOf: ({ id }) => id,
    reasonOf: ({ choices }) => choices[0]?.finish_reason,
    outputOf: ({ usage }) => usage?.completion_tokens,
    reason: "stop",
    end: ["chat.completion.chunk", "chat.completion.chunk", "[DONE]"],
    limit: { max_completion_tokens: 100 }
  },
  "completions": {
    body: (more) => ({ model: "m", prompt, stream: true, stream_options: { include_usage: true }, ...more }),
    textOf: ({ choices }) => choices[0]?.text ?? "",
    idOf: ({ id }) => id,
    reasonOf: ({ choices }) => choices[0]?.finish_reason,
    outputOf: ({ usage }) => usage?.completion_tokens,
    reason: "stop",
    end: ["text_completion", "text_completion", "[DONE]"],
    limit: { max_tokens: 100 }
  },
  "messages": {
    body: (more) => ({ model: "m", messages, max_tokens: 1_000, stream: true, ...more }),
    textOf: ({ delta }) => typeof delta === "object" ? delta.text ?? "" : "",
    idOf: ({ message }) => message?.id,
    reasonOf: ({ delta }) => typeof delta === "object" ? delta.stop_reason : undefined,
    outputOf: ({ type, usage }) => type === "message_delta" ? usage?.output_tokens : undefined,
    reason: "end_turn",
    end: ["content_block_stop", "message_delta", "message_stop"],
    limit: { max_tokens: 100 }
  },
  "streamGenerateContent": {
    body: (more) => ({ contents: [{ role: "user", parts: [{ text: prompt }] }], ...more }),
    textOf: ({ candidates }) =>
      candidates[0]?.content.parts.map(({ text }: { text?: string }) => text ?? "").join("") ?? "",
    idOf: ({ responseId }) => responseId,
    reasonOf: ({ candidates }) => candidates[0]?.finishReason,
    outputOf: ({ candidates, usageMetadata }) =>
      candidates[0]?.finishReason === undefined ? undefined : usageMetadata?.candidatesTokenCount,
    reason: "STOP",
    end: ["answer"],
    limit: { generationConfig: { maxOutputTokens: 100 } }
  },
  "responses": {
    body: (more) => ({ model: "m", input: prompt, stream: true, store: false, ...more }),
    textOf: ({ delta, type }) => type === "response.output_text.delta" ? `${delta}` : "",
    idOf: ({ response }) => response?.id,
    reasonOf: ({ response }) => response?.status === "in_progress" ? undefined : response?.status,
    outputOf: ({ response }) => response?.usage?.output_tokens,
    reason: "completed",
    end: [
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed"
    ],
    limit: { max_output_tokens: 100 }
  }
}

/** Answers what is left to count. Completions have the beginning in the prompt. */
const count = ({ messages }: Question) => {
  const asked = messages.findLast(({ role }) => role === "user")?.text ?? ""
  return { text: whole.slice(asked.slice(prompt.length).length).trimStart() }
}

/** The settings of a provider of each chat API, without the address. */
const ofProtocol = {
  openai: "protocol: openai",
  anthropic: "protocol: anthropic",
  gemini: "protocol: gemini",
  responses: "protocol: openai, options: { apis: [chatCompletions, responses] }"
} as const
type Protocol = keyof typeof ofProtocol

interface Setting {
  readonly first?: Protocol
  readonly second?: Protocol
  /** How the targets continue an answer; `undefined` if they cannot. */
  readonly continues?: readonly [Continues | undefined, Continues | undefined]
  readonly continuation?: boolean
  readonly idleMs?: number
}

const make = Effect.fnUntraced(function*(
  { continuation = true, continues = ["assistant", "assistant"], first = "openai", idleMs = 60_000, second = first }:
    Setting
) {
  const provider = yield* FakeProvider.make()
  provider.say(count)
  const target = (name: string, priority: number, how: Continues | undefined) =>
    `{ provider: ${name}, priority: ${priority}, model: ${name}${how === undefined ? "" : `, continues: ${how}`} }`
  const one = (name: string, protocol: Protocol) =>
    `  ${name}: { ${ofProtocol[protocol]}, baseUrl: "${
      provider.baseUrls[protocol] ?? provider.baseUrls["openai"]
    }", timeouts: { idleMs: ${idleMs} },` +
    " retry: { budget: 1, baseMs: 1 } }"
  const catalogue = yield* parse(
    "gateway.yaml",
    `
providers:
${one("a", first)}
${one("b", second)}
models:
  m: { workload: chat, continuation: ${continuation}, targets: [${target("a", 0, continues[0])}, ${
      target("b", 1, continues[1])
    }] }
`
  )
  const built = yield* Layer.build(Providers.layer.pipe(Layer.provide([
    Layer.succeed(Catalogue, { current: () => catalogue }),
    Layer.succeed(LocalEngines, { performs: new Map() }),
    Upstream.layer,
    GuardedFetch.layer,
    secretsIn({}),
    ResultStore.layerNone,
    Layer.effect(SharedLimits, Limits).pipe(Layer.provide(Limits.layerMemory)),
    ConfigProvider.layer(ConfigProvider.fromUnknown({}))
  ])))
  const { perform } = Context.get(built, Providers)
  const ask = Effect.fnUntraced(function*(dialect: string, more: object = {}) {
    const client = clients[dialect]!
    const pieces: Array<Uint8Array> = []
    let starts = 0
    const sink: Sink = {
      get hasStarted() {
        return starts > 0
      },
      start: () => {
        starts++
      },
      write: (bytes) => {
        pieces.push(bytes)
        return true
      },
      onDrain: (resume) => resume()
    }
    const calls: Array<string> = []
    const cut: Array<Usage> = []
    const result = yield* Effect.result(perform({
      operation: operationNamed(dialect)!,
      model: "m",
      tenant: "key",
      contentType: "application/json",
      body: Buffer.from(JSON.stringify(client.body(more))),
      deadline: (yield* Clock.currentTimeMillis) + 30_000,
      queuedMs: 0,
      onCall: ({ name }) => calls.push(name),
      onCut: (usage) => cut.push(usage)
    }, sink))
    const data = Buffer.concat(pieces).toString().split("\n").flatMap((line) =>
      line.startsWith("data: ") ? [line.slice("data: ".length)] : []
    )
    const events: ReadonlyArray<Event> = data.filter((each) => each !== "[DONE]").map((each) => JSON.parse(each))
    return { result, starts, calls, cut, data, events, text: events.map(client.textOf).join("") }
  })
  const bodyOf = (index: number) => provider.requests[index]?.json as Body
  return { provider, ask, bodyOf }
}, Effect.orDie)

type Asked = Effect.Success<ReturnType<Effect.Success<ReturnType<typeof make>>["ask"]>>

const isWhole = (dialect: string, { cut, data, events, result, starts, text }: Asked) => {
  const { end, idOf, outputOf, reason, reasonOf } = clients[dialect]!
  assert.strictEqual(result._tag, "Success")
  assert.deepStrictEqual([text, starts], [whole, 1])
  assert.lengthOf(new Set(events.flatMap((event) => idOf(event) ?? [])), 1)
  assert.deepStrictEqual(events.flatMap((event) => reasonOf(event) ?? []), [reason])
  const kinds = data.map((each) =>
    each === "[DONE]" ? each : JSON.parse(each).type ?? JSON.parse(each).object ?? "answer"
  )
  assert.deepStrictEqual(kinds.slice(-end.length), end)
  if (dialect === "responses") isOneResponse(events)
  for (const once of ["message_start", "content_block_start", "content_block_stop"]) {
    assert.isAtMost(kinds.filter((kind) => kind === once).length, 1)
  }
  const usage = result._tag === "Success" ? result.success?.outputTokens ?? 0 : 0
  assert.strictEqual(events.flatMap((event) => outputOf(event) ?? []).at(-1), usage + cut.at(-1)!.outputTokens)
}

/** Its events are numbered, and belong to one item, which is in the end the output. */
const isOneResponse = (events: ReadonlyArray<Event>) => {
  assert.deepStrictEqual(events.map(({ sequence_number }) => sequence_number), events.map((_, index) => index))
  const [{ content, id } = { content: [], id: "" }, ...others] = events.at(-1)?.response?.output ?? []
  assert.deepStrictEqual([content.map(({ text }) => text), others], [[whole], []])
  const ids = events.flatMap(({ item, item_id }) => item_id ?? item?.id ?? [])
  assert.deepStrictEqual([...new Set(ids)], [id])
}

describe("an answer that is cut is continued by another target", () => {
  it("in every streaming dialect of chat clients", () => {
    const streaming = ClientDialects.operations.filter((name) => name !== "generateContent")
    assert.sameMembers(Object.keys(clients), streaming)
  })

  const protocols = Object.keys(ofProtocol) as ReadonlyArray<Protocol>
  const cases = Object.keys(clients).flatMap((dialect) =>
    protocols.flatMap((first) => protocols.map((second) => ({ dialect, first, second })))
  )
  it.live.each(cases)("$dialect, from $first to $second", ({ dialect, first, second }) =>
    Effect.gen(function*() {
      const { ask, bodyOf, provider } = yield* make({ first, second, continues: [undefined, "assistant"] })
      provider.behaveInTurn("a", { kind: "cut", after: 7, bytes: 5 })
      const answer = yield* ask(dialect, clients[dialect]!.limit)
      isWhole(dialect, answer)
      assert.deepStrictEqual(answer.calls, ["a", "b"])
      // the limit of the second call is what the first has left
      assert.match(JSON.stringify(bodyOf(1)), /"(?:max_tokens|max_completion_tokens|maxOutputTokens)":9\d\b/)
    }).pipe(Effect.scoped))
})

it.live.each([
  { generationConfig: { max_output_tokens: 100 } },
  { generation_config: { maxOutputTokens: 100 } },
  { generation_config: { max_output_tokens: 100 } }
])("the limit of a continued answer may be spelled %j", (limit) =>
  Effect.gen(function*() {
    const { ask, bodyOf, provider } = yield* make({ first: "gemini", continues: [undefined, "assistant"] })
    provider.behaveInTurn("a", { kind: "cut", after: 7, bytes: 5 })
    yield* ask("streamGenerateContent", limit)
    assert.match(JSON.stringify(bodyOf(1)), /"max(?:OutputT|_output_t)okens":9\d\b/)
  }).pipe(Effect.scoped))

/** The text that the first call of these tests sends: the start of the message is the first event. */
const begun = "one two three four five six "

const tools = [{ type: "function", function: { name: "look", parameters: { type: "object", properties: { at: {} } } } }]

describe("an answer that breaks off", () => {
  it.live("by a cut is continued by the same target, which may be cut again", () =>
    Effect.gen(function*() {
      const { ask, bodyOf, provider } = yield* make({})
      provider.behaveInTurn("a", { kind: "cut", after: 7 }, { kind: "cut", after: 3 })
      const answer = yield* ask("chat.completions")
      assert.deepStrictEqual([answer.text, answer.result._tag], [whole, "Success"])
      assert.deepStrictEqual(answer.calls, ["a", "a", "b"])
      const given = [1, 2].map((index) => bodyOf(index).messages.at(-1))
      assert.deepStrictEqual(given, [
        { role: "assistant", content: begun.trimEnd() },
        { role: "assistant", content: `${begun}seven` }
      ])
    }).pipe(Effect.scoped))

  it.live("by silence is continued by another target", () =>
    Effect.gen(function*() {
      const { ask, provider } = yield* make({ idleMs: 1_500 })
      provider.behaveInTurn("a", { kind: "hold", after: 7 })
      const answer = yield* ask("chat.completions")
      isWhole("chat.completions", answer)
      assert.deepStrictEqual(answer.calls, ["a", "b"])
    }).pipe(Effect.scoped))

  it.live("is continued even if it is long", () =>
    Effect.gen(function*() {
      const { ask, provider } = yield* make({})
      const long = Array.from({ length: 2_000 }, (_, index) => `word${index}`).join(" ")
      provider.say(long)
      provider.behaveInTurn("a", { kind: "cut", after: 1_501 })
      const { text } = yield* ask("chat.completions")
      assert.strictEqual(text, long)
    }).pipe(Effect.scoped))

  const marks: ReadonlyArray<readonly [Continues, object, object]> = [
    ["assistant", {}, {}],
    ["prefix", { prefix: true }, {}],
    ["partial", { partial: true }, {}],
    ["continueFinalMessage", {}, { continue_final_message: true, add_generation_prompt: false }]
  ]
  it.live.each(
    marks.flatMap(([how, ...marked]) =>
      ["chat.completions", "messages"].map((dialect) => [how, dialect, ...marked] as const)
    )
  )(
    "is continued as the target says: %s, for a client of %s",
    ([how, dialect, ofMessage, ofRequest]) =>
      Effect.gen(function*() {
        const { ask, bodyOf, provider } = yield* make({ continues: [undefined, how] })
        provider.behaveInTurn("a", { kind: "cut", after: 7 })
        isWhole(dialect, yield* ask(dialect))
        const { add_generation_prompt, continue_final_message, messages } = bodyOf(1)
        assert.deepStrictEqual(messages.at(-1), { role: "assistant", content: begun.trimEnd(), ...ofMessage })
        assert.deepStrictEqual(
          JSON.stringify({ continue_final_message, add_generation_prompt }),
          JSON.stringify(ofRequest)
        )
      }).pipe(Effect.scoped)
  )

  it.live("is not repeated by a target that begins again", () =>
    Effect.gen(function*() {
      const { ask, provider } = yield* make({})
      provider.behaveInTurn("a", { kind: "cut", after: 7 }, { kind: "prefill", is: "repeated" })
      isWhole("chat.completions", yield* ask("chat.completions"))
    }).pipe(Effect.scoped))

  it.live("fails with its own error if the next target refuses to continue it", () =>
    Effect.gen(function*() {
      const { ask, provider } = yield* make({ continues: [undefined, "assistant"] })
      provider.behaveInTurn("a", { kind: "cut", after: 7 })
      provider.behave({ kind: "prefill", is: "refused" }, { model: "b" })
      const { calls, result, text } = yield* ask("chat.completions")
      assert.deepStrictEqual([calls, text], [["a", "b"], begun])
      assert.deepInclude(result._tag === "Failure" ? result.failure : {}, { reason: "cut", provider: "a" })
    }).pipe(Effect.scoped))

  it.live("is continued after a refusal by a target that accepts", () =>
    Effect.gen(function*() {
      const { ask, provider } = yield* make({})
      provider.behaveInTurn("a", { kind: "cut", after: 7 }, { kind: "prefill", is: "refused" })
      const answer = yield* ask("chat.completions")
      assert.deepStrictEqual([answer.calls, answer.text], [["a", "a", "b"], whole])
    }).pipe(Effect.scoped))

  const failing: ReadonlyArray<readonly [string, Setting, object]> = [
    ["the model does not allow it", { continuation: false }, {}],
    ["no target can continue it", { continues: [undefined, undefined] }, {}],
    ["it is JSON", {}, { response_format: { type: "json_object" } }],
    ["it is one of two", {}, { n: 2 }],
    ["the client has begun it", {}, { messages: [...messages, { role: "assistant", content: "zero" }] }]
  ]
  it.live.each(failing)("is not continued if %s", ([, setting, more]) =>
    Effect.gen(function*() {
      const { ask, provider } = yield* make(setting)
      provider.behaveInTurn("a", { kind: "cut", after: 3 })
      const { calls, result } = yield* ask("chat.completions", more)
      assert.deepStrictEqual(calls, ["a"])
      assert.deepInclude(result._tag === "Failure" ? result.failure : {}, { reason: "cut", provider: "a" })
    }).pipe(Effect.scoped))

  const others: ReadonlyArray<readonly [string, Answer]> = [
    ["it thinks", { reasoning: "let me see", text: whole }],
    ["it has begun a tool call", { text: "let", toolCalls: [{ name: "look", arguments: "{\"at\": \"the sea\"}" }] }]
  ]
  it.live.each(others)("is not continued if %s", ([, answer]) =>
    Effect.gen(function*() {
      const { ask, provider } = yield* make({})
      provider.say(answer)
      provider.behaveInTurn("a", { kind: "cut", after: 4 })
      const { calls, result } = yield* ask("chat.completions", { tools })
      assert.deepStrictEqual([calls, result._tag], [["a"], "Failure"])
    }).pipe(Effect.scoped))

  it.live("goes on with a tool call if tools are offered", () =>
    Effect.gen(function*() {
      const { ask, provider } = yield* make({})
      const call = { name: "look", arguments: "{}" }
      provider.say(({ messages }) =>
        messages.at(-1)?.role === "assistant" ? { text: "see.", toolCalls: [call] } : { text: "Let me see." }
      )
      provider.behaveInTurn("a", { kind: "cut", after: 3 })
      const { events, text } = yield* ask("messages", { tools: [{ name: "look", input_schema: { type: "object" } }] })
      const starts = events.flatMap(({ content_block, index, type }) =>
        type === "content_block_start" ? [[index, content_block?.type]] : []
      )
      assert.deepStrictEqual([text, starts], ["Let me see.", [[0, "text"], [1, "tool_use"]]])
      assert.deepNestedInclude(events.at(-2), { "delta.stop_reason": "tool_use" })
    }).pipe(Effect.scoped))
})
