/** The ai-sdk protocol with real AI SDK packages, pointed at servers in this process. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Provider } from "../../../../shared/catalogue/Provider.ts"
import { audioSpeech } from "../../../../shared/contract/operations/audio/Speech.ts"
import { transcriptions } from "../../../../shared/contract/operations/audio/Transcriptions.ts"
import { sound } from "../../../fixture/client/Requests.ts"
import { chatCompletions } from "../../../../shared/contract/operations/ChatCompletions.ts"
import { embeddings } from "../../../../shared/contract/operations/embeddings/Embeddings.ts"
import { generateContent } from "../../../../shared/contract/operations/GenerateContent.ts"
import { imageEdits } from "../../../../shared/contract/operations/ImageEdits.ts"
import { imageGenerations } from "../../../../shared/contract/operations/ImageGenerations.ts"
import type { JobError } from "../../../../shared/contract/JobError.ts"
import type { Operation, Workload } from "../../../../shared/contract/Operation.ts"
import { rerank } from "../../../../shared/contract/operations/Rerank.ts"
import type { Usage } from "../../../../shared/contract/Usage.ts"
import { pictureKind } from "../../../../shared/provider/call/PictureKind.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"
import { stripes, toDataUrl } from "../../../fixture/calls/ImagesEngine.ts"
import { type Answered, callProvider } from "../../../fixture/calls/ProtocolCall.ts"
import { keyReference } from "../../../fixture/ProviderKey.ts"
import { jsonOf, serving } from "../../../fixture/general/Serving.ts"

const key = "sk-of-the-package"

type Settings = Omit<Partial<Provider>, "protocol" | "options"> & { readonly options: Record<string, unknown> }

const ask = (
  operation: Operation,
  body: unknown,
  { options, ...settings }: Settings,
  workload: Workload = operation.workloads[0],
  onCut: (usage: Usage) => void = () => undefined
): Effect.Effect<Answered, JobError> =>
  callProvider({
    operation,
    workload,
    onCut,
    body,
    name: "sdk",
    model: "alias",
    upstreamModel: "upstream-model",
    key,
    provider: { protocol: "ai-sdk", apiKey: keyReference, ...settings, options }
  })

/** A provider of the OpenAI dialect, called through its package. */
const bench = <A, E>(
  test: (
    provider: FakeProvider,
    ask: (operation: Operation, body: unknown, options?: object) => Effect.Effect<Answered, JobError>
  ) => Effect.Effect<A, E>
) =>
  Effect.gen(function*() {
    const provider = yield* FakeProvider.make({ apiKey: key })
    return yield* test(provider, (operation, body, options = {}) =>
      ask(operation, body, { baseUrl: provider.baseUrl, options: { package: "@ai-sdk/openai", ...options } }))
  }).pipe(Effect.scoped)

const read = ({ bytes }: Answered) => JSON.parse(bytes.toString())

describe("pictures", () => {
  it.live("are generated, with a warning for fields that the SDK does not support", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const answer = yield* ask(imageGenerations, {
          model: "alias",
          prompt: "a boat",
          size: "256x128",
          quality: "low",
          watermark: true
        })
        const { data } = read(answer) as { readonly data: ReadonlyArray<{ readonly b64_json: string }> }
        assert.strictEqual(pictureKind(Buffer.from(data[0]?.b64_json ?? "", "base64")), "png")
        assert.strictEqual(answer.usage?.images, 1)
        assert.strictEqual(answer.head?.headers["x-translation-warnings"], "watermark")
        assert.strictEqual(provider.requests[0]?.path, "/v1/images/generations")
        assert.deepInclude(provider.requests[0]?.json, {
          model: "upstream-model",
          prompt: "a boat",
          n: 1,
          size: "256x128",
          quality: "low"
        })
      })
    ))

  it.live("are generated for requests with null fields, which are not sent", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        yield* ask(imageGenerations, { model: "alias", prompt: "a boat", quality: null, background: null, size: null })
        assert.notProperty(provider.requests[0]?.json, "quality")
      })
    ))

  it.live("are complete if the model makes one per call", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const answer = yield* ask(imageGenerations, { model: "alias", prompt: "a boat", n: 3, size: "64x64" })
        assert.lengthOf(read(answer).data, 3)
        assert.strictEqual(answer.usage?.images, 3)
        assert.deepStrictEqual(provider.requests.map(({ json }) => (json as { readonly n: number }).n), [1, 1, 1])
      })
    ))

  it.live("are edited, and sent to the provider as files", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const picture = yield* stripes(8, 8, [[200, 0, 0]])
        const content = [{ image: toDataUrl(picture) }, { image: picture.toString("base64") }, { text: "make it blue" }]
        const answer = yield* ask(imageEdits, { model: "alias", input: { messages: [{ role: "user", content }] } })
        assert.lengthOf(read(answer).data, 1)
        const [received] = provider.requests
        assert.strictEqual(received?.path, "/v1/images/edits")
        assert.match(received?.headers["content-type"] ?? "", /^multipart\/form-data/)
        // the picture twice, and the text
        const parts = received?.body.toString("latin1").split(picture.toString("latin1")) ?? []
        assert.lengthOf(parts, 3)
        assert.include(received?.body.toString("latin1"), "make it blue")
      })
    ))

  it.live("are generated for generateContent too", () =>
    bench(({ baseUrl }) =>
      Effect.gen(function*() {
        const settings = { baseUrl, options: { package: "@ai-sdk/openai" } }
        const body = { contents: [{ parts: [{ text: "a boat" }] }] }
        const answer = read(yield* ask(generateContent, body, settings, "images"))
        assert.strictEqual(answer.candidates[0].content.parts[0].inlineData.mimeType, "image/png")
        assert.isNumber(answer.usageMetadata.totalTokenCount)
      })
    ))

  it.live("are fetched from the provider's origin, and from nowhere else in its network", () =>
    Effect.gen(function*() {
      const picture = yield* stripes(8, 8, [[0, 0, 200]])
      const other = yield* serving((_request, response) => response.end(picture))
      let at = ""
      const provider = yield* serving((request, response) => {
        if (request.method === "GET") return response.end(picture)
        response.setHeader("content-type", "application/json").end(JSON.stringify({ images: [{ url: at }] }))
      })
      const request = { model: "alias", prompt: "a boat" }
      const settings = { baseUrl: provider.url, options: { package: "@ai-sdk/fal" } }
      at = `${provider.url}/result.png`
      const { data } = read(yield* ask(imageGenerations, request, settings))
      assert.strictEqual(data[0].b64_json, picture.toString("base64"))
      for (const host of ["127.0.0.1", "localhost", "2130706433"]) {
        at = `http://${host}:${other.port}/result.png`
        assert.deepInclude(
          yield* Effect.flip(ask(imageGenerations, request, settings)),
          { reason: "result" },
          host
        )
      }
      assert.strictEqual(other.connections(), 0)
    }).pipe(Effect.scoped))
})

describe("embeddings", () => {
  it.live("are computed by packages for versions 4, 3 and 2 of the SDK", () =>
    bench((provider) =>
      Effect.gen(function*() {
        for (const name of ["@ai-sdk/openai", "@ai-sdk/voyage", "jina-ai-provider"]) {
          const asked = ask(embeddings, { model: "alias", input: ["one", "two"] }, {
            baseUrl: provider.baseUrl,
            options: { package: name }
          })
          const answer = yield* asked
          const { data, model } = read(answer)
          assert.deepStrictEqual(data.map(({ index }: { readonly index: number }) => index), [0, 1], name)
          assert.isAbove(data[0].embedding.length, 1)
          assert.strictEqual(model, "alias")
          assert.isAbove(answer.usage?.inputTokens ?? 0, 0, name)
        }
      })
    ))

  it.live("with explicit dimensions are rejected if the package cannot request them", () =>
    bench((provider, askOpenAi) =>
      Effect.gen(function*() {
        const request = { model: "alias", input: "one", dimensions: 8 }
        assert.lengthOf(read(yield* askOpenAi(embeddings, request)).data[0].embedding, 8)
        const old = { baseUrl: provider.baseUrl, options: { package: "@ai-sdk/voyage" } }
        assert.deepInclude(yield* Effect.flip(ask(embeddings, request, old)), {
          _tag: "InvalidRequest",
          param: "dimensions"
        })
      })
    ))

  it.live("get the client's own options for the package", () =>
    bench((provider) =>
      Effect.gen(function*() {
        yield* ask(embeddings, { model: "alias", input: "one", inputType: "query" }, {
          baseUrl: provider.baseUrl,
          options: { package: "@ai-sdk/voyage", providerOptions: { voyage: { truncation: false } } }
        })
        assert.deepInclude(provider.requests[0]?.json, { input_type: "query", truncation: false })
      })
    ))

  it.live("of more texts than the package's batch come from several calls, in order", () =>
    Effect.gen(function*() {
      const sizes: Array<number> = []
      const { url } = yield* serving(async (request, response) => {
        const { requests } = await jsonOf(request) as {
          readonly requests: ReadonlyArray<
            { readonly content: { readonly parts: ReadonlyArray<{ readonly text: string }> } }
          >
        }
        sizes.push(requests.length)
        const vectors = requests.map(({ content }) => ({ values: [Number(content.parts[0]?.text)] }))
        response.setHeader("content-type", "application/json").end(JSON.stringify({ embeddings: vectors }))
      })
      const texts = Array.from({ length: 250 }, (_, index) => String(index))
      const answer = yield* ask(embeddings, { model: "alias", input: texts }, {
        baseUrl: url,
        options: { package: "@ai-sdk/google" }
      })
      const { data } = read(answer) as { readonly data: ReadonlyArray<{ readonly embedding: ReadonlyArray<number> }> }
      assert.deepStrictEqual(data.map(({ embedding }) => embedding[0]), texts.map(Number))
      assert.deepStrictEqual(sizes.toSorted((a, b) => a - b), [50, 100, 100])
    }).pipe(Effect.scoped))
})

describe("of several calls, one that has ended is metered if another fails", () => {
  // the fifth call follows the end of the first; the three between them get no answer
  const silent = { kind: "silent" } as const
  const failing = [{ kind: "answer" }, silent, silent, silent, { kind: "status", status: 400 }] as const

  it.live("for pictures", () =>
    bench((provider) =>
      Effect.gen(function*() {
        provider.behaveOnce(...failing)
        const cut: Array<Usage> = []
        const request = { model: "alias", prompt: "a boat", n: 5, size: "64x64" }
        const settings = { baseUrl: provider.baseUrl, options: { package: "@ai-sdk/openai" } }
        const asked = ask(imageGenerations, request, settings, "images", (usage) => cut.push(usage))
        assert.deepInclude(yield* Effect.flip(asked), { _tag: "ProviderRejected" })
        assert.lengthOf(provider.requests, 5)
        assert.lengthOf(cut, 1)
        assert.strictEqual(cut[0]?.images, 1)
        assert.isAbove(cut[0]?.outputTokens ?? 0, 0)
      })
    ))

  it.live("for vectors, whose tokens are estimated if the provider reports none", () =>
    bench((provider) =>
      Effect.gen(function*() {
        provider.behaveOnce(...failing)
        const cut: Array<Usage> = []
        const request = { model: "alias", input: Array.from({ length: 401 }, () => "eight by") }
        const settings = { baseUrl: `${provider.root}/v1beta`, options: { package: "@ai-sdk/google" } }
        const asked = ask(embeddings, request, settings, "embeddings", (usage) => cut.push(usage))
        assert.deepInclude(yield* Effect.flip(asked), { _tag: "ProviderRejected" })
        assert.lengthOf(provider.requests, 5)
        // a hundred texts of 8 bytes
        assert.deepStrictEqual(cut, [{ inputTokens: 200, outputTokens: 0, estimatedTokens: 200 }])
      })
    ))
})

describe("reranking", () => {
  it.live("answers in Cohere's format, with the billed units", () =>
    bench((provider) =>
      Effect.gen(function*() {
        const documents = ["a lighthouse", { title: "bees in a hive", year: 1871 }]
        const answer = yield* ask(
          rerank,
          { model: "alias", query: "bees", documents, top_n: 1, return_documents: true, maxTokensPerDoc: 64 },
          { baseUrl: `${provider.root}/v2`, options: { package: "@ai-sdk/cohere" } }
        )
        const { id, results } = read(answer)
        assert.match(id, /^rerank-/)
        assert.deepStrictEqual(results, [{ index: 1, relevance_score: 1, document: documents[1] }])
        assert.deepStrictEqual(answer.usage, { inputTokens: 0, outputTokens: 0, searchUnits: 1 })
        // the package gets fields that the gateway does not know
        assert.deepInclude(provider.requests[0]?.json, { max_tokens_per_doc: 64 })
      })
    ))

  const ranked = (provider: FakeProvider, ...scores: ReadonlyArray<readonly [index: number, score: number]>) => {
    const results = scores.map(([index, relevance_score]) => ({ index, relevance_score }))
    const headers = { "content-type": "application/json" }
    provider.behaveOnce({ kind: "raw", pieces: [JSON.stringify({ id: "r", results, meta: {} })], headers })
    return ask(rerank, { model: "alias", query: "bees", documents: ["a", "b", "c"], return_documents: true }, {
      baseUrl: `${provider.root}/v2`,
      options: { package: "@ai-sdk/cohere" }
    })
  }

  it.live("returns the most relevant document first, whatever the provider's order", () =>
    bench((provider) =>
      Effect.gen(function*() {
        const { results } = read(yield* ranked(provider, [1, 0.2], [2, 0.9], [0, 0.5]))
        assert.deepStrictEqual(results.map(({ document }: { readonly document: unknown }) => document), [
          { text: "c" },
          { text: "a" },
          { text: "b" }
        ])
      })
    ))

  it.live("fails if the answer names an unknown document", () =>
    bench((provider) =>
      Effect.gen(function*() {
        for (const index of [3, -1, 0.5]) {
          const error = yield* Effect.flip(ranked(provider, [0, 0.9], [index, 0.5]))
          assert.deepInclude(error, { _tag: "ProviderFailed", reason: "malformed" }, String(index))
        }
      })
    ))
})

describe("speech", () => {
  it.live("is the package's sound, in the voice that the catalogue maps the client's voice to", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const request = {
          model: "alias",
          input: "Hello",
          voice: "nova",
          response_format: "wav",
          instructions: "Whisper",
          language: null
        }
        const answer = yield* ask(audioSpeech, request, { voices: { nova: "marin" } })
        assert.strictEqual(answer.head?.contentType, "audio/wav")
        assert.strictEqual(answer.bytes.toString("latin1", 0, 4), "RIFF")
        assert.deepStrictEqual(answer.usage, { inputTokens: 0, outputTokens: 0, characters: 5 })
        assert.deepInclude(provider.requests[0]?.json, { voice: "marin", instructions: "Whisper", input: "Hello" })
      })
    ))

  it.live("fails if the sound is empty or text", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        for (
          const [type, pieces] of [
            ["audio/mpeg", []],
            ["application/json", [`{"error":{"message":"no voice"}}`]],
            ["audio/mpeg", ["\n<html>"]]
          ] as const
        ) {
          provider.behaveOnce({ kind: "raw", pieces, headers: { "content-type": type } })
          const error = yield* Effect.flip(ask(audioSpeech, { model: "alias", input: "Hello", voice: "nova" }))
          assert.deepInclude(error, { _tag: "ProviderFailed", reason: "malformed" }, type)
        }
      })
    ))
})

describe("transcription", () => {
  const text = "Bees dance in hives."
  const measures = { tokens: [], temperature: 0, avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 }
  const cues = [{ start: 0, end: 1, text: "Bees dance " }, { start: 1, end: 2, text: "in hives." }]
  const formats: ReadonlyArray<readonly [format: string, contentType: string, expected: string | object]> = [
    ["json", "application/json", { text, usage: { type: "duration", seconds: 1 } }],
    ["text", "text/plain; charset=utf-8", `${text}\n`],
    [
      "srt",
      "application/x-subrip; charset=utf-8",
      "1\n00:00:00,000 --> 00:00:01,000\nBees dance\n\n2\n00:00:01,000 --> 00:00:02,000\nin hives.\n\n"
    ],
    [
      "vtt",
      "text/vtt; charset=utf-8",
      "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\nBees dance\n\n00:00:01.000 --> 00:00:02.000\nin hives.\n\n"
    ],
    ["verbose_json", "application/json", {
      task: "transcribe",
      language: "en",
      duration: 1,
      text,
      segments: cues.map((cue, id) => ({ id, seek: 0, ...cue, ...measures })),
      usage: { type: "duration", seconds: 1 }
    }]
  ]
  for (const [response_format, contentType, expected] of formats) {
    it.live(`is written as ${response_format}`, () =>
      bench((provider) =>
        Effect.gen(function*() {
          provider.say(text)
          const form = new FormData()
          const fields = { model: "alias", response_format, temperature: "0.5", language: "en", prompt: "Insects" }
          for (const [name, value] of Object.entries(fields)) form.append(name, value)
          form.append("file", new File([Buffer.from(sound.split(",")[1] ?? "", "base64")], "a"))
          const answer = yield* transcribe(provider, form)
          assert.strictEqual(answer.head?.contentType, contentType)
          const written = answer.bytes.toString()
          assert.deepStrictEqual(typeof expected === "string" ? written : JSON.parse(written), expected)
          assert.deepStrictEqual(answer.usage, { inputTokens: 0, outputTokens: 0, seconds: 1 })
          const sent = provider.requests[0]?.body.toString("latin1") ?? ""
          for (
            const part of ["audio/wav", "Insects", "name=\"language\"\r\n\r\nen", "name=\"temperature\"\r\n\r\n0.5"]
          ) {
            assert.include(sent, part)
          }
        })
      ))
  }

  /** By the model whose package asks for timestamps. */
  const transcribe = (provider: FakeProvider, body: unknown) =>
    callProvider({
      operation: transcriptions,
      body,
      name: "sdk",
      model: "alias",
      upstreamModel: "whisper-1",
      key,
      provider: {
        protocol: "ai-sdk",
        apiKey: keyReference,
        baseUrl: provider.baseUrl,
        options: { package: "@ai-sdk/openai" }
      }
    })

  it.live("comes as events to clients that ask for them, with what is lost", () =>
    bench((provider) =>
      Effect.gen(function*() {
        provider.say(text)
        const body = { model: "alias", file: sound, stream: true, include: ["logprobs"] }
        const { bytes, head } = yield* transcribe(provider, body)
        assert.strictEqual(head?.contentType, "text/event-stream")
        assert.deepStrictEqual(
          bytes.toString().split("\n\n").slice(0, -1).map((frame) => JSON.parse(frame.slice(6))),
          [
            { type: "transcript.text.delta", delta: text },
            { type: "transcript.text.done", text, usage: { type: "duration", seconds: 1 } }
          ]
        )
        assert.strictEqual(head?.headers["x-translation-warnings"], "include is not carried over")
      })
    ))

  it.live("is refused in another format, and for sound that is none", () =>
    bench((provider) =>
      Effect.gen(function*() {
        const wrongs = [
          ["response_format", "diarized_json"],
          ["file", "no base64!"],
          ["file", "data:a/b;base64,"]
        ] as const
        for (const [field, value] of wrongs) {
          const body = { model: "alias", file: sound, [field]: value }
          assert.deepInclude(yield* Effect.flip(transcribe(provider, body)), { _tag: "InvalidRequest", param: field })
        }
        assert.isEmpty(provider.requests)
      })
    ))
})

describe("a failed call", () => {
  const request = { model: "alias", prompt: "a boat" }

  const cases: ReadonlyArray<readonly [status: number, headers: Record<string, string>, expected: object]> = [
    [400, {}, { _tag: "ProviderRejected", status: 400, message: "No [redacted] today", param: "prompt" }],
    [401, {}, { _tag: "ProviderFailed", reason: "credentials", status: 401 }],
    [402, {}, { _tag: "ProviderFailed", reason: "credit", status: 402 }],
    [409, {}, { _tag: "ProviderFailed", reason: "status", status: 409 }],
    [429, { "retry-after": "7" }, { _tag: "ProviderRateLimited", retryAfterMs: 7_000 }],
    [503, { "retry-after": "2" }, { _tag: "ProviderFailed", reason: "status", status: 503, retryAfterMs: 2_000 }]
  ]
  for (const [status, headers, expected] of cases) {
    it.live(`with status ${status} is reported as such, without the key`, () =>
      bench((provider, ask) =>
        Effect.gen(function*() {
          const error = { message: `No ${key} today`, type: "t", param: "prompt", code: "c" }
          provider.behaveOnce({ kind: "status", status, headers, error })
          const failure = yield* Effect.flip(ask(imageGenerations, request))
          assert.deepInclude(failure, expected)
          assert.notInclude(JSON.stringify(failure), key)
          assert.notInclude(JSON.stringify(failure), provider.root)
          // packages do not retry
          assert.lengthOf(provider.requests, 1)
        })
      ))
  }

  it.live("with a malformed answer or none is the provider's failure", () =>
    bench((provider, askOpenAi) =>
      Effect.gen(function*() {
        const json = { "content-type": "application/json" }
        provider.behaveOnce({ kind: "raw", pieces: ["{\"data\": 1}"], headers: json }, { kind: "reset" })
        assert.deepInclude(yield* Effect.flip(askOpenAi(imageGenerations, request)), { reason: "malformed" })
        assert.deepInclude(yield* Effect.flip(askOpenAi(imageGenerations, request)), { reason: "cut" })
        const closed = yield* Effect.scoped(serving(() => {}))
        const nowhere = { baseUrl: closed.url, options: { package: "@ai-sdk/openai" } }
        assert.deepInclude(yield* Effect.flip(ask(imageGenerations, request, nowhere)), { reason: "unreachable" })
        assert.strictEqual(provider.requests.length, 2)
      })
    ))

  it.live("is closed after its timeout", () =>
    bench((provider) =>
      Effect.gen(function*() {
        provider.behaveOnce({ kind: "silent" })
        const settings = {
          baseUrl: provider.baseUrl,
          timeouts: { totalMs: 2_000 },
          options: { package: "@ai-sdk/openai" }
        }
        assert.deepInclude(yield* Effect.flip(ask(imageGenerations, request, settings)), {
          _tag: "ProviderTimeout",
          phase: "total"
        })
        const received = yield* Effect.promise(() => provider.nextRequest())
        assert.strictEqual(yield* Effect.promise(() => received.closed), "aborted")
      })
    ))

  it.live("is closed if the client disconnects", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        provider.behaveOnce({ kind: "silent" })
        const asking = yield* Effect.forkChild(ask(imageGenerations, request))
        const received = yield* Effect.promise(() => provider.nextRequest())
        yield* Fiber.interrupt(asking)
        assert.strictEqual(yield* Effect.promise(() => received.closed), "aborted")
      })
    ))

  it.live("to a model type that the package lacks is the request's error", () =>
    bench(({ baseUrl }) =>
      Effect.gen(function*() {
        const settings = { baseUrl, options: { package: "@ai-sdk/voyage" } }
        const chat = { model: "alias", messages: [{ role: "user", content: "Hello" }] }
        for (const [operation, body] of [[imageGenerations, request], [chatCompletions, chat]] as const) {
          assert.deepInclude(yield* Effect.flip(ask(operation, body, settings)), {
            _tag: "InvalidRequest",
            message: `model: 'alias' does not serve ${operation.name}`
          })
        }
      })
    ))
})

describe("an AI SDK package", () => {
  const request = { model: "alias", input: "one" }

  it.live("without a key fails for lack of credentials", () =>
    bench(({ baseUrl }) =>
      Effect.gen(function*() {
        const failure = yield* Effect.flip(callProvider({
          operation: embeddings,
          body: request,
          name: "sdk",
          model: "alias",
          provider: { protocol: "ai-sdk", baseUrl, options: { package: "@ai-sdk/voyage" } }
        }))
        assert.deepInclude(failure, { _tag: "ProviderFailed", reason: "credentials" })
      })
    ))

  it.live("that is not installed, or exports no such provider, is an error of the catalogue", () =>
    bench((provider) =>
      Effect.gen(function*() {
        const wrong = [
          { package: "@ai-sdk/unheard-of" },
          { package: "../../etc/passwd" },
          { package: "sharp" },
          { package: "@ai-sdk/openai", export: "createVertex" },
          { package: "@ai-sdk/openai", unheardOf: true },
          {}
        ]
        for (const options of wrong) {
          const failure = yield* Effect.flip(ask(embeddings, request, { baseUrl: provider.baseUrl, options }))
          assert.deepInclude(failure, { _tag: "InternalError" }, JSON.stringify(options))
        }
        assert.isEmpty(provider.requests)
      })
    ))

  it.live("gets its settings, with references to secrets resolved", () =>
    bench((provider, ask) =>
      Effect.gen(function*() {
        const settings = { headers: { "x-team": keyReference, "x-plain": "plain" } }
        yield* ask(embeddings, request, { export: "createOpenAI", settings })
        assert.deepInclude(provider.requests[0]?.headers, { "x-team": key, "x-plain": "plain" })
        provider.behaveOnce({ kind: "status", status: 400, error: { message: `No ${key}` } })
        assert.deepInclude(yield* Effect.flip(ask(embeddings, request, { settings })), { message: "No [redacted]" })
        const unset = { headers: { "x-team": "${ANOTHER_KEY}" } }
        assert.deepInclude(yield* Effect.flip(ask(embeddings, request, { settings: unset })), { reason: "credentials" })
      })
    ))
})
