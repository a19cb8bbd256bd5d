/** Chat through AI SDK packages: clients of every dialect, providers of other dialects. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Provider } from "../../../../shared/catalogue/Provider.ts"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { completions } from "../../../../shared/contract/operations/Completions.ts"
import { generateContent } from "../../../../shared/contract/operations/GenerateContent.ts"
import type { JobError } from "../../../../shared/contract/JobError.ts"
import { messages } from "../../../../shared/contract/operations/Messages.ts"
import type { Usage } from "../../../../shared/contract/Usage.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"
import { stripes, toDataUrl } from "../../../fixture/calls/ImagesEngine.ts"
import { type Answered, callProvider } from "../../../fixture/calls/ProtocolCall.ts"
import { keyReference } from "../../../fixture/ProviderKey.ts"

const key = "sdk-secret"

/** The packages, and the paths of their calls at the fake provider. */
const packages = [
  { name: "@ai-sdk/anthropic", base: "/v1", path: "/v1/messages" },
  { name: "@ai-sdk/google", base: "/v1beta", path: "/v1beta/models/upstream-model:streamGenerateContent?alt=sse" },
  { name: "@ai-sdk/openai-compatible", base: "/v1", path: "/v1/chat/completions" }
] as const
type Package = typeof packages[number]
const [anthropic] = packages

interface Bench {
  readonly provider: FakeProvider
  readonly ask: (
    operation: Operation,
    body: object,
    by?: Package,
    settings?: Partial<Provider>,
    onCut?: (usage: Usage) => void
  ) => Effect.Effect<Answered, JobError>
}

const bench = <A, E>(test: (bench: Bench) => Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const provider = yield* FakeProvider.make({ apiKey: key })
    return yield* test({
      provider,
      ask: (operation, body, { base, name } = anthropic, settings = {}, onCut = () => undefined) =>
        callProvider({
          onCut,
          operation,
          workload: "chat",
          body: { model: "alias", ...body },
          name: "sdk",
          model: "alias",
          upstreamModel: "upstream-model",
          key,
          provider: {
            protocol: "ai-sdk",
            baseUrl: `${provider.root}${base}`,
            apiKey: keyReference,
            // required by the openai-compatible package only
            options: { package: name, settings: { name: "fake" } },
            ...settings
          }
        })
    })
  }).pipe(Effect.scoped)

const read = ({ bytes }: Answered) => JSON.parse(bytes.toString())

const user = (content: unknown) => [{ role: "user", content }]

interface Chunk {
  readonly choices: ReadonlyArray<{ readonly delta: { readonly content?: string } }>
  readonly usage?: Readonly<Record<string, unknown>> | null
}

/** The stream's frames that hold JSON. */
const framesOf = ({ bytes }: Answered): ReadonlyArray<Chunk> =>
  bytes.toString().split("\n\n").flatMap((frame) => {
    const data = /^data: (\{.*\})$/m.exec(frame)?.[1]
    return data === undefined ? [] : [JSON.parse(data)]
  })

describe("a conversation", () => {
  for (const by of packages) {
    it.live(`is answered through ${by.name}, with its usage`, () =>
      bench(({ ask, provider }) =>
        Effect.gen(function*() {
          provider.say({ text: "the answer", usage: { input: 7, output: 3 } })
          const answered = yield* ask(chatCompletions, { messages: user("a question"), max_tokens: 50 }, by)
          const { choices, model, usage } = read(answered)
          assert.deepInclude(choices[0], { index: 0, finish_reason: "stop" })
          assert.deepInclude(choices[0].message, { role: "assistant", content: "the answer" })
          assert.strictEqual(model, "alias")
          assert.deepInclude(usage, { prompt_tokens: 7, completion_tokens: 3 })
          assert.deepInclude(answered.usage, { inputTokens: 7, outputTokens: 3 })
          assert.strictEqual(provider.requests[0]?.path, by.path)
        })
      ))

    it.live(`calls tools through ${by.name}, and continues with their results`, () =>
      bench(({ ask, provider }) =>
        Effect.gen(function*() {
          const call = { id: "call_1", name: "weather", arguments: `{"city":"Paris"}` }
          provider.say(({ messages }) => messages.at(-1)?.role === "user" ? { toolCalls: [call] } : { text: "sunny" })
          const tools = [{
            type: "function",
            function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } }
          }]
          const question = user("How is Paris?")
          const first = read(yield* ask(chatCompletions, { messages: question, tools }, by))
          assert.strictEqual(first.choices[0].finish_reason, "tool_calls")
          const [called] = first.choices[0].message.tool_calls
          assert.deepStrictEqual(called.function.name, "weather")
          assert.deepStrictEqual(JSON.parse(called.function.arguments), { city: "Paris" })
          const { body } = provider.requests[0]!
          assert.include(body.toString(), "\"weather\"")
          const result = { role: "tool", tool_call_id: called.id, content: "It is sunny" }
          const turns = [...question, first.choices[0].message, result]
          yield* ask(chatCompletions, { messages: turns, tools }, by)
          assert.include(provider.requests[1]!.body.toString(), "It is sunny")
        })
      ))
  }

  it.live("is streamed incrementally, with its usage", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        provider.say("one two three")
        const answered = yield* ask(chatCompletions, { messages: user("count"), stream: true })
        const said = framesOf(answered).map(({ choices }) => choices[0]?.delta.content ?? "")
        assert.strictEqual(said.join(""), "one two three")
        assert.isAbove(said.filter((text) => text !== "").length, 1)
        assert.isTrue(answered.bytes.toString().endsWith("data: [DONE]\n\n"))
        assert.isAbove(answered.usage?.outputTokens ?? 0, 0)
      })
    ))

  it.live("has an estimated usage if its package reports none", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        // 24 bytes each way: 6 tokens
        provider.say("eighteen twenty-one four")
        const silent = { package: packages[2].name, settings: { name: "fake", includeUsage: false } }
        for (const stream of [false, true]) {
          const body = { messages: user("what is a hive? it is..."), stream, stream_options: { include_usage: true } }
          const answered = yield* ask(chatCompletions, body, packages[2], { options: silent })
          assert.deepStrictEqual(answered.usage, {
            inputTokens: 6,
            outputTokens: 6,
            estimatedTokens: 12,
            inputTextTokens: 6,
            outputTextTokens: 6
          })
          const details = { text_tokens: 6, audio_tokens: 0, image_tokens: 0 }
          const { usage } = stream ? framesOf(answered).at(-1)! : read(answered)
          assert.deepInclude(usage, { prompt_tokens: 6, completion_tokens: 6, total_tokens: 12, estimated_tokens: 12 })
          assert.deepStrictEqual(usage.prompt_tokens_details, { cached_tokens: 0, ...details })
          assert.deepStrictEqual(usage.completion_tokens_details, { reasoning_tokens: 0, ...details })
        }
      })
    ))

  it.live("has several choices, each from a call of its own", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        provider.say({ text: "an answer", usage: { input: 7, output: 3 } })
        const { choices, usage } = read(yield* ask(chatCompletions, { messages: user("a question"), n: 3 }))
        assert.deepStrictEqual(choices.map(({ index }: { readonly index: number }) => index), [0, 1, 2])
        assert.deepInclude(usage, { prompt_tokens: 21, completion_tokens: 9 })
        assert.lengthOf(provider.requests, 3)
        assert.deepInclude(yield* Effect.flip(ask(chatCompletions, { messages: user("a question"), n: 9 })), {
          _tag: "InvalidRequest",
          param: "n"
        })
      })
    ))

  it.live("has different choices although the request has a seed", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        provider.say("an answer")
        yield* ask(chatCompletions, { messages: user("a question"), n: 3, seed: 7 }, packages[2])
        const seeds = provider.requests.map(({ json }) => (json as { readonly seed?: number }).seed)
        assert.sameMembers(seeds, [7, 8, 9])
      })
    ))

  it.live("is possible in every dialect", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        provider.say("the answer")
        const [, google] = packages
        const message = read(yield* ask(messages, { max_tokens: 50, messages: user("a question") }, google))
        assert.deepStrictEqual(message.content, [{ type: "text", text: "the answer" }])
        const content = read(yield* ask(generateContent, { contents: [{ parts: [{ text: "a question" }] }] }))
        assert.deepStrictEqual(content.candidates[0].content.parts, [{ text: "the answer" }])
        const completion = read(yield* ask(completions, { prompt: "a question" }))
        assert.strictEqual(completion.choices[0].text, "the answer")
      })
    ))
})

describe("a field that a package does not support", () => {
  it.live("is named in a warning, or rejected if the client requests strict translation", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        const request = { messages: user("a question"), frequency_penalty: 1, seed: 7, user: "me" }
        const { head } = yield* ask(chatCompletions, request)
        const warnings = head?.headers["x-translation-warnings"] ?? ""
        for (const field of ["frequency_penalty", "seed", "user"]) assert.include(warnings, field)
        const refused = yield* Effect.flip(
          ask(chatCompletions, {
            messages: user("a question"),
            modalities: ["text", "audio"],
            audio: { voice: "a", format: "mp3" }
          })
        )
        assert.deepInclude(refused, { _tag: "InvalidRequest", code: "not_translatable" })
        assert.lengthOf(provider.requests, 1)
      })
    ))
})

describe("a mark for a cache", () => {
  const text = (text: string, mark = {}) => ({ type: "text", text, ...mark })
  const mark = { cache_control: { type: "ephemeral" } }

  it.live("is carried over where the package has a place for it, and otherwise named in a warning", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        provider.say("an answer")
        const call = { type: "tool_use", id: "call_1", name: "look", input: {} }
        const result = { type: "tool_result", tool_use_id: "call_1", content: [text("a", mark), text("b", mark)] }
        const { head } = yield* ask(messages, {
          max_tokens: 50,
          system: [text("Be brief.", mark), text("Be kind.", mark), text("Be fair.")],
          messages: [
            { role: "user", content: [text("One.", mark), text("", mark), text("Two.", mark)] },
            { role: "assistant", content: [call] },
            { role: "user", content: [result] }
          ]
        })
        assert.deepStrictEqual(head?.headers["x-translation-warnings"]?.split("; ").map((each) => each.split(" ")[0]), [
          "system[0].cache_control",
          "system[1].cache_control",
          "messages[0].content[1].cache_control",
          "messages[2].content[0].content[0].cache_control"
        ])
        assert.lengthOf(provider.requests[0]?.body.toString().match(/"cache_control"/g) ?? [], 3)
      })
    ))
})

describe("a picture", () => {
  it.live("reaches the provider as data; no package fetches it", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        const picture = yield* stripes(8, 8, [[200, 0, 0]])
        const parts = (url: string) =>
          user([{ type: "text", text: "What is it?" }, { type: "image_url", image_url: { url } }])
        yield* ask(chatCompletions, { messages: parts(toDataUrl(picture)) })
        assert.include(provider.requests[0]!.body.toString(), picture.toString("base64"))
        const failure = yield* Effect.flip(
          ask(chatCompletions, { messages: parts(`${provider.root}/files/1.png`) })
        )
        assert.deepInclude(failure, { _tag: "InvalidRequest", code: "invalid_url" })
        assert.lengthOf(provider.requests, 1)
      })
    ))
})

describe("a failed call", () => {
  const request = { messages: user("a question") }

  it.live("before the answer has the provider's own error", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        provider.behaveOnce({ kind: "status", status: 429, headers: { "retry-after": "3" } }, {
          kind: "status",
          status: 400,
          error: { message: `not with ${key}` }
        })
        assert.deepInclude(yield* Effect.flip(ask(chatCompletions, request)), {
          _tag: "ProviderRateLimited",
          retryAfterMs: 3_000
        })
        assert.deepInclude(yield* Effect.flip(ask(chatCompletions, request)), {
          _tag: "ProviderRejected",
          message: "not with [redacted]"
        })
        assert.lengthOf(provider.requests, 2)
      })
    ))

  it.live("in the middle of the answer never looks like a normal end", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        for (const kind of ["cut", "truncate", "error"] as const) {
          provider.behaveOnce({ kind, after: 3 })
          const failure = yield* Effect.flip(ask(chatCompletions, { ...request, stream: true }))
          assert.include(["ProviderFailed", "ProviderRejected"], failure._tag, kind)
        }
      })
    ))

  it.live("is metered as far as its provider has reported usage", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        const failed = {
          candidates: [{ content: { role: "model", parts: [{ text: "a" }] }, finishReason: "MALFORMED_FUNCTION_CALL" }],
          usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 }
        }
        provider.behaveOnce({
          kind: "raw",
          headers: { "content-type": "text/event-stream" },
          pieces: [`data: ${JSON.stringify(failed)}\n\n`]
        })
        const cut: Array<Usage> = []
        const [, google] = packages
        yield* Effect.flip(ask(chatCompletions, request, google, {}, (usage) => cut.push(usage)))
        assert.lengthOf(cut, 1)
        assert.deepInclude(cut[0], { inputTokens: 7, outputTokens: 3 })
      })
    ))

  it.live("is metered with the answers to the prompts before it, also if the client disconnects", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        provider.say({ text: "an answer", usage: { input: 7, output: 3 } })
        provider.behaveOnce({ kind: "answer" }, { kind: "status", status: 400 })
        const cut: Array<Usage> = []
        const body = { prompt: ["one", "two"] }
        const asked = ask(completions, body, anthropic, {}, (usage) => cut.push(usage))
        yield* Effect.flip(asked)
        assert.lengthOf(provider.requests, 2)
        assert.lengthOf(cut, 1)
        assert.deepInclude(cut[0], { inputTokens: 7, outputTokens: 3 })
        provider.behaveOnce({ kind: "answer" }, { kind: "hold", after: 2 })
        const asking = yield* Effect.forkChild(asked)
        yield* Effect.promise(() => provider.until(() => provider.requests.length === 4))
        yield* Fiber.interrupt(asking)
        assert.lengthOf(cut, 2)
        assert.isAtLeast(cut[1]?.inputTokens ?? 0, 7)
      })
    ))

  it.live("is closed after its timeout, or if the client disconnects", () =>
    bench(({ ask, provider }) =>
      Effect.gen(function*() {
        provider.behaveOnce({ kind: "hold", after: 2 }, { kind: "hold", after: 2 })
        const late = yield* Effect.flip(
          ask(chatCompletions, { ...request, stream: true }, anthropic, { timeouts: { totalMs: 2_000 } })
        )
        assert.deepInclude(late, { _tag: "ProviderTimeout", phase: "total" })
        const received = yield* Effect.promise(() => provider.nextRequest())
        assert.strictEqual(yield* Effect.promise(() => received.closed), "aborted")
        const asking = yield* Effect.forkChild(ask(chatCompletions, { ...request, stream: true }))
        yield* Effect.promise(() => provider.until(() => provider.requests.length === 2))
        yield* Fiber.interrupt(asking)
        assert.strictEqual(yield* Effect.promise(() => provider.requests[1]!.closed), "aborted")
      })
    ))
})
