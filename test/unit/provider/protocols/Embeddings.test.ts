/** Vectors by providers of every dialect, for clients of every form. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { afterEach, beforeEach } from "vitest"
import type { Provider } from "../../../../shared/catalogue/Provider.ts"
import { strictTranslation, translationHeader } from "../../../../shared/contract/ChatHeaders.ts"
import type { Operation } from "../../../../shared/contract/Operation.ts"
import { embed } from "../../../../shared/contract/operations/embeddings/Embed.ts"
import { batchEmbedContents, embedContent } from "../../../../shared/contract/operations/embeddings/EmbedContent.ts"
import { embeddings } from "../../../../shared/contract/operations/embeddings/Embeddings.ts"
import type { Usage } from "../../../../shared/contract/Usage.ts"
import * as Embeddings from "../../../../shared/provider/dialects/embeddings/Embeddings.ts"
import { callProvider } from "../../../fixture/calls/ProtocolCall.ts"
import { vectorOf } from "../../../fixture/provider/answers/Media.ts"
import { FakeProvider } from "../../../fixture/provider/FakeProvider.ts"

let provider: FakeProvider
beforeEach(async () => {
  provider = await FakeProvider.start()
})
afterEach(() => provider.stop())

const protocols = { openai: "/v1", gemini: "/v1beta", cohere: "" } as const
type Protocol = keyof typeof protocols

/** In any form. */
interface Answer {
  readonly id?: string
  readonly embedding?: unknown
  readonly [field: string]: unknown
  readonly data?: ReadonlyArray<{ readonly embedding: unknown }>
  readonly embeddings?:
    | Array<{ readonly values: unknown }>
    | { readonly float: unknown; readonly base64: ReadonlyArray<string> }
}

const ask = (
  protocol: Protocol,
  operation: Operation,
  body: object,
  headers?: Readonly<Record<string, string>>,
  onCut: (usage: Usage) => void = () => undefined
) =>
  Effect.map(
    callProvider({
      operation,
      body,
      onCut,
      ...(headers === undefined ? {} : { headers }),
      model: "alias",
      upstreamModel: "m-1",
      name: "provider",
      provider: { protocol, baseUrl: `${provider.root}${protocols[protocol]}` } satisfies Provider
    }),
    ({ bytes, head, usage }) => ({
      answer: JSON.parse(bytes.toString()) as Answer,
      warnings: head?.headers["x-translation-warnings"],
      usage
    })
  )

const texts = ["The lighthouse was built in 1871.", "It has a keeper."]
const content = (text: string) => ({ content: { parts: [{ text }] } })
const vectors = texts.map((text) => vectorOf(text, 8))

const forms = [
  {
    operation: embeddings,
    body: { model: "alias", input: texts, dimensions: 8 },
    vectors: ({ data = [] }: Answer) => data.map(({ embedding }) => embedding)
  },
  {
    operation: batchEmbedContents,
    body: {
      requests: texts.map((text) => ({ ...content(text), outputDimensionality: 8, taskType: "RETRIEVAL_QUERY" }))
    },
    vectors: ({ embeddings }: Answer) => Array.isArray(embeddings) ? embeddings.map(({ values }) => values) : []
  },
  {
    operation: embed,
    body: { model: "alias", texts, input_type: "search_query", output_dimension: 8 },
    vectors: ({ embeddings }: Answer) => Array.isArray(embeddings) ? [] : embeddings?.float
  }
] as const

/** How each provider is told that the vectors are for a query. */
const purposes: Readonly<Record<Protocol, string | undefined>> = {
  openai: undefined,
  gemini: "\"taskType\":\"RETRIEVAL_QUERY\"",
  cohere: "\"input_type\":\"search_query\""
}

describe.each(forms)("$operation.name", ({ body, operation, vectors: vectorsIn }) => {
  for (const protocol of ["openai", "gemini", "cohere"] as const) {
    it.effect(`is served by ${protocol}, and metered`, () =>
      Effect.gen(function*() {
        const { answer, usage, warnings } = yield* ask(protocol, operation, body)
        assert.deepStrictEqual(vectorsIn(answer), vectors)
        assert.deepStrictEqual(usage, { inputTokens: 10, outputTokens: 0 })
        assert.lengthOf(provider.requests, 1)
        const purpose = purposes[protocol]
        if (operation === embeddings) return
        if (purpose !== undefined) assert.include(JSON.stringify(provider.requests[0]?.json), purpose)
        else assert.match(warnings ?? "", /^(?:input_type|requests\[0\]\.taskType) is not carried over$/)
      }))
  }
})

it.effect("one vector comes in Gemini's form from every provider", () =>
  Effect.gen(function*() {
    for (const protocol of ["openai", "gemini", "cohere"] as const) {
      const { answer } = yield* ask(protocol, embedContent, { ...content(texts[0]!), outputDimensionality: 8 })
      assert.deepStrictEqual(answer, { embedding: { values: vectors[0] }, usageMetadata: { promptTokenCount: 6 } })
    }
  }))

it.effect("Cohere's form has several encodings at once", () =>
  Effect.gen(function*() {
    const request = { model: "alias", texts, input_type: "search_query", output_dimension: 8 }
    const { answer } = yield* ask("openai", embed, { ...request, embedding_types: ["base64", "float"] })
    const { embeddings, id = "", ...rest } = answer
    assert.match(id, /^[0-9a-f-]{36}$/)
    assert(embeddings !== undefined && "base64" in embeddings)
    assert.deepStrictEqual(embeddings.float, vectors)
    assert.deepStrictEqual(
      embeddings.base64.map((base64: string) => [
        ...new Float32Array(Uint8Array.from(Buffer.from(base64, "base64")).buffer)
      ]),
      vectors
    )
    assert.deepStrictEqual(rest, {
      response_type: "embeddings_by_type",
      texts,
      meta: { api_version: { version: "2" }, billed_units: { input_tokens: 10 } }
    })
    const relayed = yield* ask("cohere", embed, { ...request, embedding_types: ["int8"] })
    assert.deepStrictEqual(Object.keys(relayed.answer.embeddings ?? {}), ["int8"])
    const inputs = texts.map((text) => ({ content: [{ type: "text", text }] }))
    const mixed = yield* ask("gemini", embed, { ...request, texts: undefined, inputs })
    assert.deepInclude(mixed.answer.embeddings, { float: vectors })
  }))

it.effect("more texts than one call takes come from several calls, in order", () =>
  Effect.gen(function*() {
    const many = Array.from({ length: 250 }, (_, index) => `text ${index}`)
    for (const protocol of ["gemini", "cohere"] as const) {
      const { answer, usage } = yield* ask(protocol, embeddings, { model: "alias", input: many })
      assert.deepStrictEqual(answer.data?.map(({ embedding }) => embedding), many.map((text) => vectorOf(text, 16)))
      assert.strictEqual(usage?.inputTokens, 500)
    }
    assert.lengthOf(provider.requests, 6)
  }))

it.effect.each([["gemini", 100], ["cohere", 96]] as const)(
  "of several calls to %s, one that has ended is metered if another fails",
  ([protocol, textsPerCall]) =>
    Effect.gen(function*() {
      // the fifth call follows the end of the first; the three between them get no answer
      const input = Array.from({ length: 4 * textsPerCall + 1 }, () => "two words")
      const silent = { kind: "silent" } as const
      provider.behaveOnce({ kind: "answer" }, silent, silent, silent, { kind: "status", status: 400 })
      const cut: Array<Usage> = []
      const asked = ask(protocol, embeddings, { model: "alias", input }, {}, (usage) => cut.push(usage))
      assert.deepInclude(yield* Effect.flip(asked), { _tag: "ProviderRejected" })
      assert.lengthOf(provider.requests, 5)
      assert.deepStrictEqual(cut, [{ inputTokens: 2 * textsPerCall, outputTokens: 0 }])
    })
)

it.effect("vectors whose client leaves before it has read them are metered", () =>
  Effect.gen(function*() {
    const reported = { inputTokens: 7, outputTokens: 0 }
    const perform = Embeddings.performs(() => Effect.succeed({ vectors: Stream.make([[1, 0]]), usage: reported }))
      .get(embeddings.name)
    assert(perform !== undefined)
    const cut: Array<Usage> = []
    const isWriting = yield* Deferred.make<void>()
    const performed = perform({
      operation: embeddings,
      model: "alias",
      answersAs: "alias",
      workload: "embeddings",
      tenant: "key_test",
      contentType: "application/json",
      body: Buffer.from(JSON.stringify({ model: "alias", input: "one" })),
      onCut: (usage) => cut.push(usage),
      endpoint: { name: "provider", model: "m-1", provider: { protocol: "openai" } }
    }, {
      hasStarted: true,
      start: () => undefined,
      // a client that reads nothing
      write: () => false,
      onDrain: () => void Deferred.doneUnsafe(isWriting, Effect.void)
    })
    const fiber = yield* Effect.forkChild(performed)
    yield* Deferred.await(isWriting)
    yield* Fiber.interrupt(fiber)
    assert.deepStrictEqual(cut, [reported])
  }))

it.effect("what the provider of another dialect cannot embed is refused by its name", () =>
  Effect.gen(function*() {
    const inlineData = { mimeType: "image/png", data: "AAAA" }
    const image = "data:image/png;base64,AAAA"
    const base = { model: "alias", input_type: "image" }
    const refused: ReadonlyArray<readonly [operation: Operation, body: object, param: string]> = [
      [embedContent, { content: { parts: [{ inlineData }] } }, "content.parts[0].inlineData"],
      [embedContent, { content: { parts: [{ inline_data: inlineData }] } }, "content.parts[0].inline_data"],
      [embedContent, { content: { parts: [{ text: "" }] } }, "content.parts"],
      [embed, { ...base, images: [image] }, "images"],
      [
        embed,
        { ...base, inputs: [{ content: [{ type: "image_url", image_url: { url: image } }] }] },
        "inputs[0].content[0].image_url"
      ],
      [embed, { ...base, texts: ["a"], embedding_types: ["float", "int8"] }, "embedding_types[1]"],
      [
        batchEmbedContents,
        { requests: [content("a"), { ...content("b"), output_dimensionality: 3 }] },
        "requests[1].outputDimensionality"
      ]
    ]
    for (const [operation, body, param] of refused) {
      const error = yield* Effect.flip(ask("openai", operation, body))
      assert.deepInclude(error, { _tag: "InvalidRequest", param })
    }
    assert.isEmpty(provider.requests)
  }))

it.effect("hints without effect are named", () =>
  Effect.gen(function*() {
    const hints = { title: "T", taskType: "FACT_VERIFICATION", unknown: 1 }
    const { warnings } = yield* ask("cohere", embedContent, { ...content("a"), ...hints })
    assert.sameMembers(warnings?.split("; ") ?? [], [
      "title is not carried over",
      "unknown is not carried over",
      "taskType is not carried over"
    ])
    const { warnings: cut } = yield* ask("gemini", embed, {
      ...{ model: "alias", texts, input_type: "clustering", truncate: "END" }
    })
    assert.strictEqual(cut, "truncate is not carried over")
  }))

it.effect("unknown fields that the provider does not accept are named without their client's text, or refused before the call", () =>
  Effect.gen(function*() {
    const body = { model: "alias", input: texts, user: "me", "日本\r\nx-a: b": 1 }
    const { warnings } = yield* ask("gemini", embeddings, body)
    assert.strictEqual(warnings, "user is not carried over; (a field) is not carried over")
    const { length } = provider.requests
    const error = yield* Effect.flip(ask("gemini", embeddings, body, { [translationHeader]: strictTranslation }))
    assert.deepInclude(error, { _tag: "InvalidRequest", param: "user", code: "not_translatable" })
    assert.lengthOf(provider.requests, length)
  }))

it.effect("an answer with too few vectors, or none, is malformed", () =>
  Effect.gen(function*() {
    for (const answer of [{ data: [{ embedding: [1] }] }, { data: [{ embedding: "AAAA" }] }, {}]) {
      provider.behaveOnce({ kind: "raw", pieces: [JSON.stringify(answer)] })
      const error = yield* Effect.flip(ask("openai", embed, { model: "alias", texts, input_type: "search_query" }))
      assert.deepInclude(error, { _tag: "ProviderFailed", reason: "malformed" })
    }
  }))
