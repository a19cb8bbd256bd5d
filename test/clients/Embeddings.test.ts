/** Embeddings through the whole gateway, with the official clients and as plain requests. */
import { createCohere } from "@ai-sdk/cohere"
import { createGoogleGenerativeAI } from "@ai-sdk/google"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { assert, describe, it } from "@effect/vitest"
import { OpenAIEmbeddings } from "@langchain/openai"
import { cosineSimilarity, embed, embedMany } from "ai"
import { Cohere, CohereClientV2 } from "cohere-ai"
import OpenAi7, { BadRequestError, NotFoundError } from "openai"
import { googleGenAis, openais } from "../fixture/ClientMajors.ts"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({
  workers: 0,
  services: ["embeddings"],
  models: `  org/team/embedding: { workload: embeddings, targets: [{ provider: local }] }`
})

const model = "local-embedding"
const texts = ["The cat sat on the mat", "A cat is sitting on a mat", "Stock prices fell sharply"]

/** Checks that the first two texts are closer to each other than the first and the last. */
const assertSensible = (vectors: ReadonlyArray<Array<number>>) => {
  const [cat = [], sitting = [], stocks = []] = vectors
  assert.lengthOf(vectors, 3)
  assert.isAbove(cosineSimilarity(cat, sitting), cosineSimilarity(cat, stocks) + 0.3)
}

describe.each(Object.entries(openais))("openai %s", (_, OpenAI) => {
  const client = () => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })

  it("embeds texts in its default encoding", async () => {
    const answer = await client().embeddings.create({ model, input: texts })
    assert.deepStrictEqual(answer.data.map(({ index, object }) => [index, object]), [
      [0, "embedding"],
      [1, "embedding"],
      [2, "embedding"]
    ])
    assert.strictEqual(answer.model, model)
    assert.strictEqual(answer.usage.prompt_tokens, answer.usage.total_tokens)
    assert.isAbove(answer.usage.total_tokens, 15)
    assertSensible(answer.data.map(({ embedding }) => embedding))
    assert.lengthOf(answer.data[0]?.embedding ?? [], 1_536)
  })

  it("gets the same vectors as floats, and as base64 on request", async () => {
    const defaults = await client().embeddings.create({ model, input: texts[0]! })
    const floats = await client().embeddings.create({ model, input: texts[0]!, encoding_format: "float" })
    const base64 = await client().embeddings.create({ model, input: texts[0]!, encoding_format: "base64" })
    const vector = defaults.data[0]?.embedding
    assert.deepStrictEqual(floats.data[0]?.embedding.map(Math.fround), vector)
    const bytes = Buffer.from(base64.data[0]?.embedding as unknown as string, "base64")
    assert.deepStrictEqual(Array.from(vector ?? [], (_, at) => bytes.readFloatLE(at * 4)), vector)
  })

  it("gets vectors of the requested length", async () => {
    for (const dimensions of [1, 256, 4_096]) {
      const { data } = await client().embeddings.create({ model, input: texts, dimensions })
      assert.deepStrictEqual(data.map(({ embedding }) => embedding.length), [dimensions, dimensions, dimensions])
    }
  })

  it("embeds 2,048 texts at once", async () => {
    const input = Array.from({ length: 2_048 }, (_, number) => `text number ${number}`)
    const { data } = await client().embeddings.create({ model, input })
    assert.deepStrictEqual(data.map(({ index }) => index), [...input.keys()])
    const [alone] = (await client().embeddings.create({ model, input: input[2_000]! })).data
    assert.deepStrictEqual(data[2_000]?.embedding, alone?.embedding)
  })

  it("gets the name of a wrong field", async () => {
    const wrong = [
      [{ input: "" }, "input"],
      [{ input: [] }, "input"],
      [{ input: ["a", ""] }, "input[1]"],
      [{ input: [1, 2, 3] }, "input[0]"],
      [{ input: "a", dimensions: 0 }, "dimensions"]
    ] as const
    for (const [body, param] of wrong) {
      const error = await client().embeddings.create({ model, ...body } as never).catch((error: unknown) => error)
      assert.instanceOf(error, OpenAI.BadRequestError)
      assert.deepInclude(error, { status: 400, param, type: "invalid_request_error", code: "invalid_value" })
    }
  })

  it("cannot embed with a model of another workload", async () => {
    const error = await client().embeddings.create({ model: "local-chat", input: "a" }).catch((error: unknown) => error)
    assert.instanceOf(error, OpenAI.NotFoundError)
    assert.deepInclude(error, { code: "model_not_supported", param: "model" })
  })
})

describe("the AI SDK", () => {
  const textEmbeddingModel = () =>
    createOpenAICompatible({ name: "gateway", baseURL: `${shared().url}/v1`, apiKey: shared().key })
      .embeddingModel(model)

  it("embeds many texts", async () => {
    const { embeddings, usage } = await embedMany({ model: textEmbeddingModel(), values: texts })
    assertSensible(embeddings)
    assert.isAbove(usage.tokens, 15)
  })

  it("embeds one text", async () => {
    const { embedding } = await embed({ model: textEmbeddingModel(), value: "one text" })
    assert.lengthOf(embedding, 1_536)
  })
})

describe("LangChain", () => {
  it("embeds documents and queries", async () => {
    const embeddings = new OpenAIEmbeddings({
      model,
      apiKey: shared().key,
      dimensions: 512,
      configuration: { baseURL: `${shared().url}/v1` }
    })
    assertSensible(await embeddings.embedDocuments([...texts]))
    assert.lengthOf(await embeddings.embedQuery("a query"), 512)
  })
})

describe("the path with the model in it", () => {
  const client = () => new OpenAi7({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })
  const post = (path: string, body: object) =>
    client().post<OpenAi7.CreateEmbeddingResponse>(`/engines/${path}/embeddings`, { body })

  it("embeds with the path's model, whatever model the body names, or none", async () => {
    for (const body of [{}, { model: null }, { model: "unheard-of" }]) {
      const answer = await post(model, { ...body, input: texts, encoding_format: "float" })
      assert.strictEqual(answer.model, model)
      assertSensible(answer.data.map(({ embedding }) => embedding))
    }
  })

  it("accepts a name with slashes, escaped or not", async () => {
    for (const path of ["org/team/embedding", encodeURIComponent("org/team/embedding")]) {
      const answer = await post(path, { input: "a text", dimensions: 3 })
      assert.strictEqual(answer.model, "org/team/embedding")
      assert.lengthOf(answer.data[0]?.embedding ?? [], 3)
    }
  })

  it("answers with an error for an unknown model or a missing text", async () => {
    const unknown = await post("unheard-of", { model, input: "a" }).catch((error: unknown) => error)
    assert.instanceOf(unknown, NotFoundError)
    assert.deepInclude(unknown, { code: "model_not_found", param: "model" })
    const missing = await post(model, {}).catch((error: unknown) => error)
    assert.instanceOf(missing, BadRequestError)
    assert.deepInclude(missing, { param: "input" })
  })
})

describe.each(Object.entries(googleGenAis))("google genai %s", (_, GoogleGenAI) => {
  const client = () => new GoogleGenAI({ apiKey: shared().key, httpOptions: { baseUrl: shared().url } }).models

  it("embeds texts, for a purpose and at a length", async () => {
    const answer = await client().embedContent({
      model,
      contents: texts,
      config: { taskType: "RETRIEVAL_QUERY", outputDimensionality: 256 }
    })
    const vectors = (answer.embeddings ?? []).map(({ values = [] }) => values)
    assertSensible(vectors)
    assert.deepStrictEqual(vectors.map(({ length }) => length), [256, 256, 256])
  })

  it("gets the name of a wrong field", async () => {
    const wrong = client().embedContent({ model, contents: texts, config: { outputDimensionality: 0 } })
    const error = await wrong.then(() => assert.fail("no error"), (error: unknown) => error)
    assert.deepInclude(error, { status: 400 })
    assert.include(String(error), "requests[0].outputDimensionality")
  })
})

describe("cohere-ai", () => {
  const client = () => new CohereClientV2({ environment: shared().url, token: shared().key })
  const once = { maxRetries: 0 }

  it("embeds texts in several encodings", async () => {
    const { embeddings, meta, texts: returned } = await client().embed({
      model,
      texts,
      inputType: "search_document",
      embeddingTypes: ["float", "base64"],
      outputDimension: 256
    }, once)
    assertSensible(embeddings.float ?? [])
    assert.deepStrictEqual(returned, texts)
    assert.isAbove(meta?.billedUnits?.inputTokens ?? 0, 15)
    const [first = ""] = embeddings.base64 ?? []
    const floats = new Float32Array(Uint8Array.from(Buffer.from(first, "base64")).buffer)
    assert.deepStrictEqual([...floats], embeddings.float?.[0]?.map(Math.fround))
  })

  it("gets the name of a wrong field", async () => {
    const error = await client().embed({ model, inputType: "search_query" }, once)
      .then(() => assert.fail("no error"), (error: unknown) => error)
    assert.instanceOf(error, Cohere.BadRequestError)
    assert.include(JSON.stringify(error.body), "texts: is required")
  })
})

describe("the AI SDK", () => {
  it("embeds texts with the packages for Google and Cohere", async () => {
    const apiKey = shared().key
    const google = createGoogleGenerativeAI({ baseURL: `${shared().url}/v1beta`, apiKey })
    const cohere = createCohere({ baseURL: `${shared().url}/v2`, apiKey })
    for (const embedder of [google.embeddingModel(model), cohere.embeddingModel(model)]) {
      const { embeddings } = await embedMany({ model: embedder, values: texts, maxRetries: 0 })
      assertSensible(embeddings)
      const { embedding } = await embed({ model: embedder, value: texts[0]!, maxRetries: 0 })
      assert.deepStrictEqual(embedding, embeddings[0])
    }
  })
})
