/** Calls of the protocols over HTTP, on a provider connection that the test controls. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Result } from "effect"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import type { JobError } from "../../../../shared/contract/JobError.ts"
import { completions } from "../../../../shared/contract/operations/Completions.ts"
import { streamGenerateContent } from "../../../../shared/contract/operations/GenerateContent.ts"
import { messages } from "../../../../shared/contract/operations/Messages.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import type { Usage } from "../../../../shared/contract/Usage.ts"
import { FetchRefused, type GuardedFetch } from "../../../../shared/provider/transport/GuardedFetch.ts"
import { anthropic } from "../../../../shared/provider/protocols/anthropic/Anthropic.ts"
import { gemini } from "../../../../shared/provider/protocols/gemini/Gemini.ts"
import * as HttpCall from "../../../../shared/provider/exchange/HttpCall.ts"
import type { HttpProtocol } from "../../../../shared/provider/exchange/HttpProtocol.ts"
import { openAi } from "../../../../shared/provider/protocols/openai/OpenAi.ts"
import type { Call, Perform } from "../../../../shared/provider/call/Protocol.ts"
import type { Secrets } from "../../../../shared/provider/transport/Secrets.ts"
import type { ResponseHeaders } from "../../../../shared/provider/transport/ResponseHeaders.ts"
import type { Head, Sink } from "../../../../shared/provider/transport/Sink.ts"
import type {
  ExchangeControl,
  Receiver,
  Upstream,
  UpstreamRequest
} from "../../../../shared/provider/transport/Upstream.ts"
import { keyReference } from "../../../fixture/ProviderKey.ts"

/** A connection whose other end is the test. */
class Connection {
  readonly request: UpstreamRequest
  readonly #receiver: Receiver
  readonly end: () => void
  paused = 0

  constructor(
    request: UpstreamRequest,
    receiver: (control: ExchangeControl) => Receiver,
    settle: (result: Effect.Effect<void, JobError>) => void
  ) {
    this.request = request
    this.end = () => settle(Effect.void)
    this.#receiver = receiver({
      pause: () => this.paused++,
      resume: () => this.paused--,
      noteContent: () => undefined,
      fail: (error) => settle(Effect.fail(error))
    })
  }

  get json(): Record<string, unknown> {
    return JSON.parse(Buffer.from(this.request.body ?? []).toString()) as Record<string, unknown>
  }

  head(status: number, contentType: string | ReadonlyArray<string>, headers: ResponseHeaders = {}): void {
    this.#receiver.onHead(status, { ...headers, "content-type": contentType })
  }

  data(text: string): void {
    this.#receiver.onData(Buffer.from(text))
  }
}

/** A client that takes `room` pieces before it asks for a pause. */
class TestSink implements Sink {
  head: Head | undefined
  room: number
  readonly pieces: Array<Uint8Array> = []
  #resume: (() => void) | undefined

  constructor(room = Infinity) {
    this.room = room
  }

  get hasStarted(): boolean {
    return this.head !== undefined
  }

  get text(): string {
    return Buffer.concat(this.pieces).toString()
  }

  start(head: Head): void {
    this.head = head
  }

  write(bytes: Uint8Array): boolean {
    this.pieces.push(bytes)
    return --this.room > 0
  }

  onDrain(resume: () => void): void {
    this.#resume = resume
  }

  drain(): void {
    this.room = Infinity
    this.#resume?.()
  }
}

const guardWith = (fetch: GuardedFetch["Service"]["fetch"]): GuardedFetch["Service"] => ({
  fetch,
  post: () => assert.fail("unexpected post"),
  dispatcher: () => assert.fail("unexpected use of the dispatcher")
})

const unfetched = guardWith(() => Effect.fail(new FetchRefused({ reason: "address" })))

const secrets: Secrets["Service"] = { resolve: () => Effect.succeedSome(Redacted.make("s3cret")) }

const start = <Options>(protocol: HttpProtocol<Options>, guard: GuardedFetch["Service"] = unfetched) => {
  const connections: Array<Connection> = []
  const upstream: Upstream["Service"] = {
    exchange: (request, receiver) =>
      Effect.callback((resume) => {
        connections.push(new Connection(request, receiver, resume))
      })
  }
  return { perform: HttpCall.make(protocol, { upstream, secrets, guard }), connections }
}

const call = (operation: Operation, body: object, options: object = {}): Call => ({
  operation,
  model: "alias",
  answersAs: "alias",
  workload: "chat",
  tenant: "t",
  contentType: "application/json",
  body: Buffer.from(JSON.stringify(body)),
  endpoint: {
    name: "p",
    provider: {
      protocol: "anthropic",
      baseUrl: "https://provider.example",
      apiKey: keyReference,
      options: { ...options }
    },
    model: "upstream"
  }
})

/** Starts a call in the background, and returns once it waits for its provider. */
const begin = Effect.fnUntraced(function*(perform: Perform, call: Call, sink: Sink) {
  const fiber = yield* Effect.forkChild(Effect.result(perform(call, sink)))
  yield* Effect.yieldNow
  return fiber
})

const hello = [{ role: "user", content: "Hello" }]
const sse = "text/event-stream"
const event = (type: string, more: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
const word = (text: string) => event("content_block_delta", { index: 0, delta: { type: "text_delta", text } })
const opening = event("message_start", { message: { usage: { input_tokens: 3, output_tokens: 1 } } }) +
  event("content_block_start", { index: 0, content_block: { type: "text", text: "" } })
const closing = event("content_block_stop", { index: 0 }) +
  event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }) +
  event("message_stop", {})

describe("a slow client", () => {
  it.effect("slows down the provider, translated or not", () =>
    Effect.gen(function*() {
      for (const operation of [chatCompletions, messages]) {
        const { connections, perform } = start(anthropic)
        const sink = new TestSink(1)
        const body = { model: "alias", max_tokens: 9, messages: hello, stream: true }
        const fiber = yield* begin(perform, call(operation, body), sink)
        const [connection] = connections
        connection!.head(200, sse)
        connection!.data(opening + word("a"))
        assert.strictEqual(connection!.paused, 1, operation.name)
        sink.drain()
        assert.strictEqual(connection!.paused, 0)
        connection!.data(word("b") + closing)
        connection!.end()
        const result = yield* Fiber.join(fiber)
        assert.deepInclude(Result.getOrThrow(result), { inputTokens: 3, outputTokens: 2 })
      }
    }))

  it.effect("slows down all exchanges of one answer, and later resumes them all", () =>
    Effect.gen(function*() {
      const { connections, perform } = start(anthropic)
      const sink = new TestSink(1)
      const fiber = yield* begin(
        perform,
        call(chatCompletions, { model: "alias", messages: hello, n: 3, stream: true }),
        sink
      )
      assert.lengthOf(connections, 3)
      for (const connection of connections) {
        connection.head(200, sse)
        connection.data(opening + word("a"))
      }
      assert.deepStrictEqual(connections.map(({ paused }) => paused), [1, 1, 1])
      sink.drain()
      assert.deepStrictEqual(connections.map(({ paused }) => paused), [0, 0, 0])
      for (const connection of connections) {
        connection.data(closing)
        connection.end()
      }
      assert.deepInclude(Result.getOrThrow(yield* Fiber.join(fiber)), { inputTokens: 9, outputTokens: 6 })
      assert.lengthOf(sink.text.match(/"finish_reason":"stop"/g) ?? [], 3)
      assert.lengthOf(sink.text.match(/\[DONE\]/g) ?? [], 1)
    }))
})

describe("the content type of an answer", () => {
  it.effect("is the first one if there are two, whether it is a stream or not", () =>
    Effect.gen(function*() {
      const whole = JSON.stringify({ type: "message", content: [], usage: { input_tokens: 3, output_tokens: 2 } })
      const answers = [[false, "application/json", whole], [true, sse, opening + word("a") + closing]] as const
      for (const [stream, contentType, text] of answers) {
        const { connections, perform } = start(anthropic)
        const sink = new TestSink()
        const body = { model: "alias", max_tokens: 9, messages: hello, stream }
        const fiber = yield* begin(perform, call(messages, body), sink)
        connections[0]!.head(200, [`${contentType}; charset=utf-8`, contentType])
        connections[0]!.data(text)
        connections[0]!.end()
        assert.deepInclude(Result.getOrThrow(yield* Fiber.join(fiber)), { inputTokens: 3, outputTokens: 2 })
        assert.strictEqual(sink.head?.contentType, `${contentType}; charset=utf-8`)
        assert.strictEqual(sink.text, text)
      }
    }))

  it.effect("shows a stream even if the provider does not write it in lower case", () =>
    Effect.gen(function*() {
      const { connections, perform } = start(anthropic)
      const sink = new TestSink()
      const body = { model: "alias", max_tokens: 9, messages: hello, stream: true }
      const fiber = yield* begin(perform, call(messages, body), sink)
      connections[0]!.head(200, "Text/Event-Stream; charset=UTF-8")
      connections[0]!.data(opening + word("a") + closing)
      connections[0]!.end()
      yield* Fiber.join(fiber)
      assert.strictEqual(sink.head?.contentType, "text/event-stream; charset=UTF-8")
    }))
})

describe("several exchanges of one answer that is cut", () => {
  const cases = [
    ["a stream, by its client", true, "client", { inputTokens: 9, outputTokens: 5 }],
    ["a stream, by a provider", true, "provider", { inputTokens: 9, outputTokens: 5 }],
    ["an answer as JSON, by its client", false, "client", { inputTokens: 6, outputTokens: 4 }],
    ["an answer as JSON, by a provider", false, "provider", { inputTokens: 6, outputTokens: 4 }]
  ] as const

  it.effect.each(cases)("are all metered: %s", ([, stream, by, expected]) =>
    Effect.gen(function*() {
      const { connections, perform } = start(anthropic)
      const cut: Array<Usage> = []
      const body = { model: "alias", messages: hello, n: 4, stream }
      const request = { ...call(chatCompletions, body), onCut: (usage: Usage) => cut.push(usage) }
      const fiber = yield* begin(perform, request, new TestSink())
      const [first, second, third, fourth] = connections
      const whole = {
        content: [{ type: "text", text: "a" }],
        stop_reason: "end_turn",
        usage: { input_tokens: 3, output_tokens: 2 }
      }
      for (const ended of [first, second]) {
        ended!.head(200, stream ? sse : "application/json")
        ended!.data(stream ? opening + word("a") + closing : JSON.stringify(whole))
        ended!.end()
      }
      if (stream) {
        third!.head(200, sse)
        third!.data(opening + word("a"))
      }
      yield* Effect.yieldNow
      if (by === "client") yield* Fiber.interrupt(fiber)
      else {
        fourth!.head(529, "application/json")
        fourth!.end()
        assert.isTrue(Result.isFailure(yield* Fiber.join(fiber)))
      }
      assert.deepStrictEqual(cut, [expected])
    }))

  it.effect("are not metered if none has answered", () =>
    Effect.gen(function*() {
      const { connections, perform } = start(anthropic)
      const cut: Array<Usage> = []
      const body = { model: "alias", messages: hello, n: 2, stream: true }
      const request = { ...call(chatCompletions, body), onCut: (usage: Usage) => cut.push(usage) }
      const fiber = yield* begin(perform, request, new TestSink())
      assert.lengthOf(connections, 2)
      yield* Fiber.interrupt(fiber)
      assert.isEmpty(cut)
    }))
})

describe("a request", () => {
  const own = { prompt_cache_key: "the client's own" }
  const options = { promptCacheKey: true }
  const cases = [
    ["gets its session's id as the key of the cache", chatCompletions, options, {}, "session"],
    ["gets it in another dialect", messages, options, {}, "session"],
    ["keeps its own key of the cache", chatCompletions, options, own, own.prompt_cache_key],
    ["gets none at a provider that may not know it", chatCompletions, {}, {}, undefined]
  ] as const
  it.effect.each(cases)("%s", ([, operation, options, more, expected]) =>
    Effect.gen(function*() {
      const { connections, perform } = start(openAi)
      const body = { model: "alias", max_tokens: 9, messages: hello, ...more }
      const fiber = yield* begin(perform, { ...call(operation, body, options), session: "session" }, new TestSink())
      assert.strictEqual(connections[0]?.json["prompt_cache_key"], expected)
      yield* Fiber.interrupt(fiber)
    }))
})

describe("a relayed stream of two choices, of which one has ended", () => {
  const gemini2 = { contents: [], generationConfig: { candidateCount: 2 } }
  const frame = (data: object) => `data: ${JSON.stringify(data)}\n\n`
  const openAiPart = (index: number, finish_reason: string | null) =>
    frame({ choices: [{ index, delta: { content: "a" }, text: "a", finish_reason }] })
  const geminiPart = (index: number, finishReason?: string) =>
    frame({ candidates: [{ index, content: { parts: [{ text: "a" }] }, finishReason }] })
  const openAiParts = [
    openAiPart(0, null) + openAiPart(1, null) + openAiPart(0, "stop"),
    openAiPart(1, "stop")
  ] as const
  const geminiParts = [geminiPart(0) + geminiPart(1) + geminiPart(0, "STOP"), geminiPart(1, "STOP")] as const
  const chat = { model: "alias", messages: hello, n: 2, stream: true }
  const cases = [
    ["chat completions", chatCompletions, openAi, chat, openAiParts],
    [
      "completions with two prompts",
      completions,
      openAi,
      { model: "alias", prompt: ["a", "b"], stream: true },
      openAiParts
    ],
    ["generated content", streamGenerateContent, gemini, gemini2, geminiParts]
  ] as const

  it.effect.each(cases)(
    "is cut if the provider sends no more: %s",
    ([, operation, protocol, body, [first, rest]]) =>
      Effect.gen(function*() {
        for (const more of ["", rest]) {
          const { connections, perform } = start(protocol as HttpProtocol<unknown>)
          const sink = new TestSink()
          const fiber = yield* begin(perform, call(operation, body), sink)
          connections[0]!.head(200, sse)
          connections[0]!.data(first + more)
          connections[0]!.end()
          const result = yield* Fiber.join(fiber)
          assert.strictEqual(sink.text, first + more)
          assert.strictEqual(Result.isFailure(result), more === "")
          if (Result.isFailure(result)) assert.deepInclude(result.failure, { _tag: "ProviderFailed", reason: "cut" })
        }
      })
  )
})

describe("an answer", () => {
  it.effect("has no head before its first piece, so that the gateway can still try another provider", () =>
    Effect.gen(function*() {
      const { connections, perform } = start(anthropic)
      const sink = new TestSink()
      const fiber = yield* begin(
        perform,
        call(chatCompletions, { model: "alias", messages: hello, stream: true }),
        sink
      )
      const [connection] = connections
      connection!.head(200, sse)
      connection!.data(opening + event("ping", {}))
      assert.isFalse(sink.hasStarted)
      connection!.data(event("error", { error: { type: "overloaded_error", message: "Overloaded" } }))
      const result = yield* Fiber.join(fiber)
      assert.deepInclude(Result.isFailure(result) ? result.failure : undefined, { reason: "error", status: 529 })
      assert.isFalse(sink.hasStarted)
    }))

  /** Of each protocol: what may precede the content of a stream, contents, and its end. */
  const chunk = (delta: object, reason: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`
  const part = (part: object, more: object = {}) =>
    `data: ${JSON.stringify({ candidates: [{ index: 0, content: { parts: [part] }, ...more }] })}\n\n`
  const started = (block: object) => event("content_block_start", { index: 0, content_block: block })
  const blockDelta = (delta: object) => event("content_block_delta", { index: 0, delta })
  const streams = {
    openai: {
      protocol: openAi,
      operation: chatCompletions,
      before: [
        ": PROCESSING\n\n",
        chunk({ role: "assistant", content: "", refusal: null }),
        `data: {"choices":[]}\n\n`
      ],
      contents: [
        chunk({ content: "a" }),
        chunk({ reasoning_content: "a" }),
        chunk({ tool_calls: [{ index: 0, id: "1", function: { name: "f", arguments: "" } }] }),
        chunk({}, "stop")
      ],
      text: (text: string) => chunk({ content: text }),
      tool: chunk({ tool_calls: [{ index: 0, id: "1", function: { name: "f", arguments: "" } }] }),
      damaged: `data: {"id": "1", "choices": [{"delta": {"content": \n\n`,
      end: `${chunk({}, "stop")}data: [DONE]\n\n`
    },
    anthropic: {
      protocol: anthropic,
      operation: messages,
      before: [
        event("message_start", { message: { usage: { input_tokens: 3, output_tokens: 1 } } }),
        event("ping", {}),
        started({ type: "text", text: "" })
      ],
      contents: [
        word("a"),
        blockDelta({ type: "thinking_delta", thinking: "a" }),
        started({ type: "tool_use", id: "1", name: "f", input: {} }),
        event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } })
      ],
      text: word,
      tool: blockDelta({ type: "input_json_delta", partial_json: "{" }),
      damaged: `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"\n\n`,
      end: closing
    },
    gemini: {
      protocol: gemini,
      operation: streamGenerateContent,
      before: [part({ text: "" }), `data: {"usageMetadata":{"promptTokenCount":3}}\n\n`],
      contents: [
        part({ text: "a" }),
        part({ text: "a", thought: true }),
        part({ functionCall: { name: "f", args: {} } }),
        part({ text: "" }, { finishReason: "STOP" })
      ],
      text: (text: string) => part({ text }),
      tool: part({ functionCall: { name: "f", args: {} } }),
      damaged: `data: {"candidates":[{"index":0,"content":{"parts":[{"text":"b"}]\n\n`,
      end: part({ text: "" }, { finishReason: "STOP" })
    }
  }
  const cases = Object.entries(streams)
  const asked = {
    model: "alias",
    max_tokens: 9,
    messages: hello,
    contents: [{ role: "user", parts: [{ text: "Hello" }] }],
    stream: true
  }

  it.effect.each(cases)(
    "relayed from %s has no head before its first content of any kind",
    ([, stream]) =>
      Effect.gen(function*() {
        for (const content of stream.contents) {
          const { connections, perform } = start<never>(stream.protocol as unknown as HttpProtocol<never>)
          const sink = new TestSink()
          yield* begin(perform, call(stream.operation, asked), sink)
          const [connection] = connections
          connection!.head(200, sse)
          for (const piece of stream.before) {
            connection!.data(piece)
            assert.isFalse(sink.hasStarted, piece)
          }
          connection!.data(content)
          assert.strictEqual(sink.text, stream.before.join("") + content)
        }
      })
  )

  it.effect.each(cases)(
    "from %s loses a damaged piece of text, relayed or translated",
    ([, stream]) =>
      Effect.gen(function*() {
        for (const operation of [stream.operation, stream.operation === messages ? chatCompletions : messages]) {
          const answer = Effect.fnUntraced(function*(...pieces: ReadonlyArray<string>) {
            const { connections, perform } = start<never>(stream.protocol as unknown as HttpProtocol<never>)
            const sink = new TestSink()
            const fiber = yield* begin(perform, call(operation, asked), sink)
            const [connection] = connections
            connection!.head(200, sse)
            for (const piece of [...stream.before, ...pieces, stream.end]) connection!.data(piece)
            connection!.end()
            const result = yield* Fiber.join(fiber)
            return { text: sink.text, failure: Result.isFailure(result) ? result.failure : undefined }
          })
          const { damaged, text, tool } = stream
          const skipped = yield* answer(text("aaa"), damaged, text("ccc"))
          assert.isUndefined(skipped.failure, operation.name)
          assert.match(skipped.text, /aaa[^]*ccc/)
          const malformed = { _tag: "ProviderFailed", reason: "malformed" } as const
          // nothing is known about what it damages: another piece, the rest of the text, or a tool call
          for (
            const pieces of [
              [damaged, text("ccc")],
              [text("aaa"), damaged, damaged, text("ccc")],
              [text("aaa"), damaged, tool],
              [text("aaa"), tool, damaged, text("ccc")],
              [text("aaa"), "data: {\"x\":\n\n", text("ccc")]
            ]
          ) assert.deepInclude((yield* answer(...pieces)).failure, malformed, `${operation.name}: ${pieces.join("")}`)
        }
      })
  )

  it.effect("is JSON if the client requests JSON, as is the provider's", () =>
    Effect.gen(function*() {
      const { connections, perform } = start(anthropic)
      const sink = new TestSink()
      const fiber = yield* begin(perform, call(chatCompletions, { model: "alias", messages: hello }), sink)
      const [connection] = connections
      assert.notProperty(connection!.json, "stream")
      assert.deepStrictEqual(connection!.request.headers.slice(0, 2), ["accept", "application/json"])
      connection!.head(200, "application/json")
      connection!.data("{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}],")
      connection!.data("\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":3,\"output_tokens\":2}}")
      connection!.end()
      assert.isTrue(Result.isSuccess(yield* Fiber.join(fiber)))
      assert.deepStrictEqual(sink.head, { status: 200, contentType: "application/json", headers: {} })
      assert.deepInclude(JSON.parse(sink.text), { object: "chat.completion", model: "alias" })
    }))
})

describe("a picture at a URL", () => {
  const asking = {
    model: "alias",
    messages: [{
      role: "user",
      content: [
        { type: "image_url", image_url: { url: "https://example.com/a.png" } },
        { type: "image_url", image_url: { url: "https://example.com/b.png" } }
      ]
    }]
  }

  it.effect("is fetched for a provider that does not fetch URLs, and otherwise passed on", () =>
    Effect.gen(function*() {
      const fetched: Array<string> = []
      const guard = guardWith((url) => {
        fetched.push(url)
        return Effect.succeed({ bytes: Buffer.from(url), mediaType: "image/PNG; charset=binary" })
      })
      const toGemini = start(gemini, guard)
      yield* begin(toGemini.perform, call(chatCompletions, asking), new TestSink())
      assert.deepStrictEqual(fetched, ["https://example.com/a.png", "https://example.com/b.png"])
      assert.deepNestedPropertyVal(
        toGemini.connections[0]!.json,
        "contents[0].parts",
        fetched.map((url) => ({ inlineData: { mimeType: "image/png", data: Buffer.from(url).toString("base64") } }))
      )
      const toAnthropic = start(anthropic, guard)
      yield* begin(toAnthropic.perform, call(chatCompletions, asking), new TestSink())
      assert.lengthOf(fetched, 2)
      assert.deepNestedPropertyVal(toAnthropic.connections[0]!.json, "messages[0].content[1].source", {
        type: "url",
        url: "https://example.com/b.png"
      })
    }))

  it.effect("that cannot be fetched is rejected by its field before anything is sent", () =>
    Effect.gen(function*() {
      const { connections, perform } = start(gemini)
      const result = yield* Effect.result(perform(call(chatCompletions, asking), new TestSink()))
      assert.deepInclude(Result.isFailure(result) ? result.failure : undefined, {
        _tag: "InvalidRequest",
        param: "messages[0].content[0]",
        code: "invalid_url"
      })
      assert.lengthOf(connections, 0)
    }))

  const album = (count: number) => ({
    model: "alias",
    messages: [{
      role: "user",
      content: Array.from({ length: count }, (_, index) => ({
        type: "image_url",
        image_url: { url: `https://example.com/${index % 50}.png` }
      }))
    }]
  })

  it.effect("is fetched once even if the request names it twice, and counts once for number, but twice for size", () =>
    Effect.gen(function*() {
      let fetched = 0
      const guard = (size: number) =>
        guardWith(() =>
          Effect.sync(() => {
            fetched++
            return { bytes: new Uint8Array(size), mediaType: "image/png" }
          })
        )
      const twice = { model: "alias", messages: [...album(3).messages, ...album(3).messages] }
      const { connections, perform } = start(gemini, guard(1))
      yield* begin(perform, call(chatCompletions, twice), new TestSink())
      assert.strictEqual(fetched, 3)
      assert.lengthOf((connections[0]!.json["contents"] as [{ parts: Array<unknown> }])[0].parts, 6)
      const cases = [
        [album(41), 1, "messages[0].content[40]"],
        [album(4), 20_000_000, "messages[0].content[3]"],
        // the provider gets each picture twice
        [twice, 12_000_000, "messages[0].content[2]"]
      ] as const
      for (const [body, size, param] of cases) {
        const { perform } = start(gemini, guard(size))
        const result = yield* Effect.result(perform(call(chatCompletions, body), new TestSink()))
        assert.deepInclude(Result.isFailure(result) ? result.failure : undefined, { _tag: "InvalidRequest", param })
      }
    }))

  it.effect("is not fetched if the request is rejected for another reason", () =>
    Effect.gen(function*() {
      const guard = guardWith(() => assert.fail("it was fetched"))
      const { perform } = start(gemini, guard)
      const result = yield* Effect.result(perform(call(chatCompletions, { ...asking, logprobs: true }), new TestSink()))
      assert.deepInclude(Result.isFailure(result) ? result.failure : undefined, { param: "logprobs" })
    }))
})

describe("a provider's error", () => {
  const failing = Effect.fnUntraced(function*<Options>(
    protocol: HttpProtocol<Options>,
    status: number,
    body: object,
    headers: Record<string, string> = {}
  ) {
    const { connections, perform } = start(protocol)
    const fiber = yield* begin(perform, call(chatCompletions, { model: "alias", messages: hello }), new TestSink())
    connections[0]!.head(status, "application/json", headers)
    connections[0]!.data(JSON.stringify(body))
    connections[0]!.end()
    const result = yield* Fiber.join(fiber)
    return Result.isFailure(result) ? result.failure : assert.fail("it did not fail")
  })

  const google = (error: object) => ({ error: { code: 400, message: "No", status: "INVALID_ARGUMENT", ...error } })

  it.effect("from Google is classified by its details", () =>
    Effect.gen(function*() {
      const key = google({
        message: "API key not valid.",
        details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }]
      })
      assert.deepInclude(yield* failing(gemini, 400, key), { _tag: "ProviderFailed", reason: "credentials" })
      const quota = google({
        code: 429,
        details: [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "34.4s" }]
      })
      assert.deepInclude(yield* failing(gemini, 429, quota), { _tag: "ProviderRateLimited", retryAfterMs: 34_400 })
      const field = google({
        details: [{
          "@type": "type.googleapis.com/google.rpc.BadRequest",
          fieldViolations: [{ field: "generation_config.top_p", description: "No" }]
        }]
      })
      assert.deepInclude(yield* failing(gemini, 400, field), {
        _tag: "ProviderRejected",
        message: "No",
        param: "top_p",
        code: "INVALID_ARGUMENT"
      })
      // a failed stream that is not of events returns a list
      assert.deepInclude(yield* failing(gemini, 404, [google({ code: 404, message: "No such model" })]), {
        _tag: "ProviderRejected",
        status: 404,
        message: "No such model"
      })
    }))

  it.effect("is a provider failure if the gateway's account has no credit, whatever the status", () =>
    Effect.gen(function*() {
      const of = (type: string, code: string | null, message: string) => ({
        error: { message, type, param: null, code }
      })
      const quota = "You exceeded your current quota, please check your plan and billing details."
      const balance = "Your credit balance is too low to access the Anthropic API."
      const failures = [
        yield* failing(openAi, 429, of("insufficient_quota", "insufficient_quota", quota), { "retry-after": "1" }),
        yield* failing(openAi, 429, of("insufficient_quota", null, quota)),
        yield* failing(openAi, 400, of("invalid_request_error", "billing_hard_limit_reached", "Billing hard limit")),
        yield* failing(anthropic, 400, { type: "error", error: { type: "invalid_request_error", message: balance } }),
        yield* failing(anthropic, 402, { type: "error", error: { type: "billing_error", message: "No" } })
      ]
      for (const failure of failures) {
        assert.deepInclude(failure, { _tag: "ProviderFailed", reason: "credit", retryAfterMs: null })
        assert.include(failure.message, "has no credit left")
      }
      assert.deepInclude(yield* failing(openAi, 429, of("requests", "rate_limit_exceeded", "Rate limit reached")), {
        _tag: "ProviderRateLimited"
      })
    }))

  it.effect("hides the key and the URL", () =>
    Effect.gen(function*() {
      const message = "s3cret is not welcome at https://provider.example/v1/messages"
      const error = yield* failing(anthropic, 400, { type: "error", error: { type: "invalid_request_error", message } })
      assert.strictEqual(error.message, "[redacted] is not welcome at [redacted]/v1/messages")
    }))

  it.effect("names no field that is not in the client's dialect", () =>
    Effect.gen(function*() {
      const message = "messages.0.content: too long"
      const error = yield* failing(anthropic, 400, { type: "error", error: { type: "invalid_request_error", message } })
      assert.deepInclude(error, { message, param: null })
    }))

  it.effect("in OpenAI's format keeps its field and code", () =>
    Effect.gen(function*() {
      const { connections, perform } = start(openAi)
      const body = { model: "alias", max_tokens: 5, messages: hello }
      const fiber = yield* begin(perform, call(messages, body), new TestSink())
      connections[0]!.head(400, "application/json")
      connections[0]!.data(JSON.stringify({
        error: { message: "Too many", type: "invalid_request_error", param: "max_completion_tokens", code: "too_large" }
      }))
      connections[0]!.end()
      const result = yield* Fiber.join(fiber)
      assert.deepInclude(Result.isFailure(result) ? result.failure : undefined, {
        param: "max_tokens",
        code: "too_large"
      })
    }))
})

describe("the options in the catalogue", () => {
  it.effect("apply to the request, and an unknown option is an internal error", () =>
    Effect.gen(function*() {
      const { connections, perform } = start(anthropic)
      const asked = { model: "alias", messages: hello }
      yield* begin(perform, call(chatCompletions, asked, { maxTokens: 1_234 }), new TestSink())
      assert.deepInclude(connections[0]!.json, { max_tokens: 1_234 })
      const result = yield* Effect.result(perform(call(chatCompletions, asked, { maxtokens: 1 }), new TestSink()))
      assert.deepInclude(Result.isFailure(result) ? result.failure : undefined, { _tag: "InternalError" })
    }))
})
