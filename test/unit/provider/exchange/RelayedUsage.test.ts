/** The usage of relayed answers is metered by model, whatever their format and size. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { audioSpeech } from "../../../../shared/contract/operations/AudioSpeech.ts"
import { embeddings } from "../../../../shared/contract/operations/Embeddings.ts"
import { imageEdits } from "../../../../shared/contract/operations/ImageEdits.ts"
import { imageGenerations } from "../../../../shared/contract/operations/ImageGenerations.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import { rerank } from "../../../../shared/contract/operations/Rerank.ts"
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

describe("an answer without results and with status 200", () => {
  const requests = [
    ["vectors", embeddings, { model: "m", input: "one" }],
    ["pictures", imageGenerations, { model: "m", prompt: "a boat" }],
    ["sound", audioSpeech, { model: "m", input: "Hello", voice: "nova" }]
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
