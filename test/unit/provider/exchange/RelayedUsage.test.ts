/** The usage of relayed answers is metered by model, whatever their format and size. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { audioSpeech } from "../../../../shared/contract/operations/audio/Speech.ts"
import { transcriptions } from "../../../../shared/contract/operations/audio/Transcriptions.ts"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { embeddings } from "../../../../shared/contract/operations/embeddings/Embeddings.ts"
import { imageEdits } from "../../../../shared/contract/operations/ImageEdits.ts"
import { imageGenerations } from "../../../../shared/contract/operations/ImageGenerations.ts"
import { messages } from "../../../../shared/contract/operations/Messages.ts"
import { moderations } from "../../../../shared/contract/operations/Moderations.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import { rerank } from "../../../../shared/contract/operations/Rerank.ts"
import { sound } from "../../../fixture/client/Requests.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"
import { callProvider } from "../../../fixture/calls/ProtocolCall.ts"

/** A provider's answer in pieces. */
interface Answer {
  readonly pieces: ReadonlyArray<string>
  readonly contentType?: string
}

const ask = Effect.fnUntraced(function*(operation: Operation, body: unknown, answer?: Answer, upstreamModel = "m") {
  const provider = yield* FakeProvider.make()
  if (answer !== undefined) {
    const { contentType = "application/json", pieces } = answer
    provider.behaveOnce({ kind: "raw", pieces, headers: { "content-type": contentType } })
  }
  return yield* callProvider({
    operation,
    body,
    name: "openai",
    model: "m",
    upstreamModel,
    provider: { protocol: "openai", baseUrl: provider.baseUrl }
  })
}, Effect.scoped)

const image = "iVBORw0KGgo".repeat(150_000)

describe("an answer too large to buffer", () => {
  const vector = JSON.stringify({
    object: "embedding",
    index: 0,
    embedding: Array.from({ length: 3_000 }, Math.random)
  })
  const pieces = [
    "{\"object\":\"list\",\"data\":[",
    ...Array.from({ length: 60 }, (_, index) => index === 0 ? vector : `,${vector}`),
    "],\"model\":\"m\",\"usage\":{\"prompt_tokens\":120,\"total_tokens\":120}}"
  ]
  const request = { model: "m", input: ["one", "two"] }

  it.live("is metered while it passes", () =>
    Effect.gen(function*() {
      const { bytes, usage } = yield* ask(embeddings, request, { pieces })
      assert.isAbove(bytes.length, 3_000_000)
      assert.strictEqual(bytes.toString(), pieces.join(""))
      assert.deepStrictEqual(usage, { inputTokens: 120, outputTokens: 0 })
    }))

  it.live("has the client's model name, and every other byte unchanged", () =>
    Effect.gen(function*() {
      for (
        const named of [`,  "model" : "upstream" , "a":{"model":"upstream"}`, `,"b":"model","model":"\\u0075pstream"`]
      ) {
        const text = [...pieces.slice(0, -1), `]${named},"usage":{"prompt_tokens":120,"total_tokens":120}}`].join("")
        for (const size of [1 << 20, 65_536, 65_537, 1_000_003]) {
          const cut = Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
            text.slice(at * size, (at + 1) * size))
          const { bytes, usage } = yield* ask(embeddings, request, { pieces: cut }, "upstream")
          assert.strictEqual(
            bytes.toString(),
            text.replace(/"model"( ?: ?)"(upstream|\\u0075pstream)"/, `"model"$1"m"`)
          )
          assert.deepStrictEqual(usage, { inputTokens: 120, outputTokens: 0 })
        }
      }
    }))

  it.live("fails if it ends in the middle", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(ask(embeddings, request, { pieces: pieces.slice(0, -1) }))
      assert.deepInclude(error, { _tag: "ProviderFailed", reason: "malformed" })
    }))
})

describe("pictures", () => {
  const usage = { input_tokens: 5, output_tokens: 7, total_tokens: 12 }
  const cases = [
    ["in a small answer", { data: [{ url: "https://a" }, { url: "https://b" }] }, { inputTokens: 0, outputTokens: 0 }],
    ["with tokens", { data: [{ b64_json: "aaaa" }, { b64_json: "[,]" }], usage }, { inputTokens: 5, outputTokens: 7 }],
    [
      "in a buffered answer",
      { data: [{ b64_json: image.slice(0, 300_000) }, { b64_json: "b" }], usage },
      { inputTokens: 5, outputTokens: 7 }
    ],
    ["in a streamed answer", { usage, data: [{ b64_json: image }, { b64_json: image }] }, {
      inputTokens: 5,
      outputTokens: 7
    }]
  ] as const

  it.live.each(cases)("%s are counted", ([, answer, tokens]) =>
    Effect.gen(function*() {
      const pieces = [JSON.stringify({ created: 1, ...answer })]
      const made = yield* ask(imageGenerations, { model: "m", prompt: "a boat" }, { pieces })
      assert.deepStrictEqual(made.usage, { ...tokens, images: 2 })
    }))

  it.live("edited by a form are counted", () =>
    Effect.gen(function*() {
      const form = new FormData()
      form.set("model", "m")
      form.set("prompt", "brighter")
      form.set("image", new File(["x"], "a.png"))
      const made = yield* ask(imageEdits, form, { pieces: [JSON.stringify({ data: [{ b64_json: "aaaa" }] })] })
      assert.deepStrictEqual(made.usage, { inputTokens: 0, outputTokens: 0, images: 1 })
    }))
})

describe("speech", () => {
  const request = { model: "m", input: "Grüße 🙂", voice: "nova" }

  it.live("is metered by its input characters", () =>
    Effect.gen(function*() {
      const { bytes, usage } = yield* ask(audioSpeech, request)
      assert.isAbove(bytes.length, 0)
      assert.deepStrictEqual(usage, { inputTokens: 0, outputTokens: 0, characters: 7 })
    }))

  it.live("fails if the answer is a proxy's HTML page", () =>
    Effect.gen(function*() {
      const page = { pieces: ["<html>Please sign in</html>"], contentType: "text/html; charset=utf-8" }
      const error = yield* Effect.flip(ask(audioSpeech, request, page))
      assert.deepInclude(error, { _tag: "ProviderFailed", reason: "malformed" })
    }))
})

describe("transcription", () => {
  const events = [
    { type: "transcript.text.delta", delta: "Hi" },
    { type: "transcript.text.done", text: "Hi", usage: { type: "tokens", input_tokens: 5, output_tokens: 2 } }
  ]
  const stream = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("")
  const json = (answer: object) => [JSON.stringify(answer), "application/json"] as const
  const details = { input_token_details: { audio_tokens: 4, text_tokens: 1 } }
  const none = { inputTokens: 0, outputTokens: 0 }
  const cases: ReadonlyArray<readonly [string, readonly [answer: string, contentType: string], object | undefined]> = [
    ["seconds", json({ text: "Hi", usage: { type: "duration", seconds: 3 } }), { ...none, seconds: 3 }],
    ["the duration of the sound", json({ text: "Hi", duration: 2.5 }), { ...none, seconds: 2.5 }],
    [
      "tokens",
      json({ text: "Hi", usage: { type: "tokens", input_tokens: 5, output_tokens: 2, ...details } }),
      { inputTokens: 5, outputTokens: 2, inputAudioTokens: 4, inputTextTokens: 1 }
    ],
    ["the tokens of a stream", [stream, "text/event-stream"], { inputTokens: 5, outputTokens: 2 }],
    ["nothing if there is none", json({ text: "Hi" }), undefined],
    ["nothing for plain text, which passes unread", ["{ not JSON", "text/plain; charset=utf-8"], undefined],
    ["nothing for subtitles", ["WEBVTT\n", "text/vtt"], undefined]
  ]
  it.live.each(cases)(
    "is metered by %s, and passes unchanged",
    ([, [answer, contentType], expected]) =>
      Effect.gen(function*() {
        const form = new FormData()
        form.append("model", "m")
        form.append("file", new File(["x"], "a.wav"))
        if (contentType === "text/event-stream") form.append("stream", "true")
        const { bytes, head, usage } = yield* ask(transcriptions, form, { pieces: [answer], contentType })
        assert.strictEqual(bytes.toString(), answer)
        assert.strictEqual(head?.contentType, contentType)
        assert.deepStrictEqual(usage, expected)
      })
  )

  it.live("fails if a stream ends before its text does", () =>
    Effect.gen(function*() {
      const pieces = [`data: ${JSON.stringify(events[0])}\n\n`]
      const body = { model: "m", file: sound, stream: true }
      const error = yield* Effect.flip(ask(transcriptions, body, { pieces, contentType: "text/event-stream" }))
      assert.deepInclude(error, { _tag: "ProviderFailed", reason: "cut" })
    }))
})

describe("moderation", () => {
  it.live("is not metered, and passes unchanged", () =>
    Effect.gen(function*() {
      const answer = "{\"id\": \"1\", \"model\":\"m\", \"results\":[{\"flagged\":false}]}"
      const { bytes, usage } = yield* ask(moderations, { model: "m", input: "Hello" }, { pieces: [answer] })
      assert.strictEqual(bytes.toString(), answer)
      assert.isUndefined(usage)
    }))
})

describe("embeddings", () => {
  const request = { model: "m", input: ["one", "two"] }
  const data = [{ object: "embedding", index: 0, embedding: [1] }, { object: "embedding", index: 1, embedding: [2] }]

  it.live("are metered by the total if there is no other count", () =>
    Effect.gen(function*() {
      const { usage } = yield* ask(embeddings, request, {
        pieces: [JSON.stringify({ data, usage: { total_tokens: 4 } })]
      })
      assert.deepStrictEqual(usage, { inputTokens: 4, outputTokens: 0 })
    }))
})

describe("an answer without usage", () => {
  const words = "The hive is a city of bees, and every bee knows its work."
  const question = { model: "m", messages: [{ role: "user", content: "What is a hive?" }] }
  /** In bytes over four: of the question 16, of the words 57. */
  const [prompt, completion] = [4, 15]
  const estimated = { inputTokens: prompt, outputTokens: completion, estimatedTokens: prompt + completion }
  const head = { id: "c1", object: "chat.completion.chunk", created: 1, model: "upstream" }
  const frame = (piece: object) => `data: ${JSON.stringify({ ...head, ...piece })}\n\n`
  const delta = (delta: object, finish_reason: string | null = null) =>
    frame({ choices: [{ index: 0, delta, finish_reason }] })
  const stream = (...last: ReadonlyArray<string>) => ({
    contentType: "text/event-stream",
    pieces: [
      delta({ role: "assistant", content: "" }),
      ...words.split(/(?= )/).map((content) => delta({ content })),
      delta({}, "stop"),
      ...last
    ]
  })
  const whole = (more: object) => ({
    pieces: [
      JSON.stringify({
        ...head,
        choices: [{ message: { role: "assistant", content: words }, finish_reason: "stop" }],
        ...more
      })
    ]
  })
  const done = "data: [DONE]\n\n"
  const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }
  const asked = { ...question, stream: true, stream_options: { include_usage: true } }

  it.live.each([{}, { usage: null }, { usage: zeros }])(
    "gets an estimate, as JSON: %j",
    (more) =>
      Effect.gen(function*() {
        const { bytes, usage } = yield* ask(chatCompletions, question, whole(more), "upstream")
        const answer = JSON.parse(bytes.toString())
        assert.deepInclude(answer, { id: "c1", model: "m" })
        assert.deepInclude(answer.usage, {
          prompt_tokens: prompt,
          completion_tokens: completion,
          total_tokens: prompt + completion,
          estimated_tokens: prompt + completion
        })
        assert.deepStrictEqual(usage, estimated)
      })
  )

  it.live.each([[done], [], [frame({ choices: [], usage: zeros }), done]])(
    "gets an estimate, as the last event before the end of a stream: %j",
    ([...last]) =>
      Effect.gen(function*() {
        const { bytes, usage } = yield* ask(chatCompletions, asked, stream(...last), "upstream")
        const frames = bytes.toString().split(/(?<=\n\n)/)
        assert.strictEqual(frames.at(-1) === done, last.includes(done))
        const sent = frames.filter((frame) => frame !== done).map((frame) => JSON.parse(frame.slice("data: ".length)))
        assert.deepInclude(sent.at(-1), { ...head, model: "m", choices: [] })
        assert.deepInclude(sent.at(-1).usage, { prompt_tokens: prompt, estimated_tokens: prompt + completion })
        assert.lengthOf(sent.filter(({ usage }) => usage !== undefined), 1)
        assert.deepStrictEqual(usage, estimated)
      })
  )

  // an event with zeros may follow the one with the usage
  it.live.each([[chatCompletions, asked], [messages, { ...question, max_tokens: 100, stream: true }]] as const)(
    "keeps the usage that precedes zeros: %s",
    ([operation, request]) =>
      Effect.gen(function*() {
        const counted = { prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 }
        const last = [frame({ choices: [], usage: counted }), frame({ choices: [], usage: zeros }), done]
        const { usage } = yield* ask(operation, request, stream(...last), "upstream")
        assert.deepInclude(usage, { inputTokens: 11, outputTokens: 4 })
        assert.isUndefined(usage?.estimatedTokens)
      })
  )

  it.live("is metered by its size if it is too large to buffer, and passes unchanged", () =>
    Effect.gen(function*() {
      const content = words.repeat(20_000)
      const answer = JSON.stringify({ ...head, choices: [{ message: { content }, finish_reason: "stop" }] })
      const { bytes, usage } = yield* ask(chatCompletions, question, { pieces: [answer] })
      assert.strictEqual(bytes.toString(), answer)
      assert.strictEqual(usage?.inputTokens, prompt)
      assert.approximately(usage?.outputTokens ?? 0, content.length / 4, 100)
    }))

  it.live("is unchanged if it is a stream and the client did not ask for usage", () =>
    Effect.gen(function*() {
      for (const last of [[done], [frame({ choices: [], usage: zeros }), done]]) {
        const { bytes, usage } = yield* ask(chatCompletions, { ...question, stream: true }, stream(...last))
        assert.strictEqual(bytes.toString(), stream(done).pieces.join(""))
        assert.deepStrictEqual(usage, estimated)
      }
    }))

  it.live("gets an estimate, translated", () =>
    Effect.gen(function*() {
      const request = { ...question, max_tokens: 100 }
      const { bytes, usage } = yield* ask(messages, request, whole({}))
      const text = { inputTextTokens: prompt, outputTextTokens: completion }
      assert.deepStrictEqual(usage, { ...estimated, ...text })
      const counts = { input_tokens: prompt, output_tokens: completion, estimated_tokens: prompt + completion }
      assert.deepInclude(JSON.parse(bytes.toString()).usage, counts)
      const streamed = yield* ask(messages, { ...request, stream: true }, stream(done))
      assert.deepStrictEqual(streamed.usage, { ...estimated, ...text })
      const last = /"type":"message_delta".*"usage":(\{.*\})\}/.exec(streamed.bytes.toString())?.[1] ?? ""
      assert.deepInclude(JSON.parse(last), counts)
    }))

  it.live("gets an estimate of the texts of embeddings, and of a ranking for the meter", () =>
    Effect.gen(function*() {
      const data = [{ object: "embedding", index: 0, embedding: [1] }]
      const vectors = yield* ask(embeddings, { model: "m", input: [words] }, { pieces: [JSON.stringify({ data })] })
      const tokens = { prompt_tokens: completion, total_tokens: completion, estimated_tokens: completion }
      assert.deepStrictEqual(JSON.parse(vectors.bytes.toString()).usage, tokens)
      const read = { inputTokens: completion, outputTokens: 0, estimatedTokens: completion }
      assert.deepStrictEqual(vectors.usage, read)
      const body = JSON.stringify({ id: "r", results: [{ index: 0, relevance_score: 1 }] })
      const ranked = yield* ask(rerank, { model: "m", query: "b", documents: [words.slice(1)] }, { pieces: [body] })
      assert.strictEqual(ranked.bytes.toString(), body)
      assert.deepStrictEqual(ranked.usage, read)
    }))

  it.live("counts the request's texts and tools, but no files", () =>
    Effect.gen(function*() {
      const url = `data:image/png;base64,${"A".repeat(40_000)}`
      const parts = [{ type: "text", text: "What is a hive?!" }, { type: "image_url", image_url: { url } }]
      const tool = { type: "function", function: { name: "look", parameters: { type: "object" } } }
      const { usage } = yield* ask(
        chatCompletions,
        { ...question, messages: [{ role: "user", content: parts }], tools: [tool] },
        whole({})
      )
      assert.strictEqual(usage?.inputTokens, Math.ceil((16 + JSON.stringify(tool).length) / 4))
    }))
})

describe("an answer without results and with status 200", () => {
  const requests = [
    ["vectors", embeddings, { model: "m", input: "one" }],
    ["pictures", imageGenerations, { model: "m", prompt: "a boat" }],
    ["sound", audioSpeech, { model: "m", input: "Hello", voice: "nova" }],
    ["spoken text", transcriptions, { model: "m", file: sound }],
    ["judgements", moderations, { model: "m", input: "Hello" }]
  ] as const

  it.live.each(requests)("is a provider failure for %s", ([, operation, body]) =>
    Effect.gen(function*() {
      for (const wrong of [{}, { data: null }, { data: "" }, { data: "x".repeat(400_000) }, { message: "no" }]) {
        const error = yield* Effect.flip(ask(operation, body, { pieces: [JSON.stringify(wrong)] }))
        assert.deepInclude(error, { _tag: "ProviderFailed", reason: "error" })
      }
    }))

  it.live.each(requests)(
    "is the client's error if the answer says so: %s",
    ([, operation, body]) =>
      Effect.gen(function*() {
        // as vLLM answered
        const said = { object: "error", message: "too long", type: "BadRequestError", param: null, code: 400 }
        const error = yield* Effect.flip(ask(operation, body, { pieces: [JSON.stringify(said)] }))
        assert.deepInclude(error, { _tag: "ProviderRejected", status: 400, message: "too long" })
      })
  )
})

describe("reranking", () => {
  const request = { model: "m", query: "bees", documents: "a hive" }
  const results = [{ index: 0, relevance_score: 0.5 }]

  it.live("is metered by its tokens and gets an id, also at a server of this dialect", () =>
    Effect.gen(function*() {
      const { bytes, usage } = yield* ask(rerank, request, {
        pieces: [JSON.stringify({ model: "m", results, usage: { total_tokens: 9 } })]
      })
      const { id, ...rest } = JSON.parse(bytes.toString())
      assert.match(id, /^[0-9a-f-]{36}$/)
      assert.deepStrictEqual(rest, { model: "m", results, usage: { total_tokens: 9 } })
      assert.deepStrictEqual(usage, { inputTokens: 9, outputTokens: 0 })
    }))

  it.live("sends a single document as a list of one", () =>
    Effect.gen(function*() {
      const provider = yield* FakeProvider.make()
      provider.behaveOnce({ kind: "raw", pieces: [JSON.stringify({ id: "r", results })] })
      yield* callProvider({
        operation: rerank,
        body: request,
        name: "openai",
        model: "m",
        provider: { protocol: "openai", baseUrl: provider.baseUrl }
      })
      assert.strictEqual(provider.requests[0]?.path, "/v1/rerank")
      assert.deepStrictEqual(provider.requests[0]?.json, { ...request, documents: ["a hive"] })
    }).pipe(Effect.scoped))
})
