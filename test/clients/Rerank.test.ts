/** Reranking through the whole gateway, with both versions of Cohere's client and with the AI SDK. */
import { createCohere } from "@ai-sdk/cohere"
import { assert, describe, it } from "@effect/vitest"
import { APICallError, rerank } from "ai"
import { Cohere, CohereClient, CohereClientV2 } from "cohere-ai"
import { sharedGateway } from "../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({ workers: 0, services: ["rerank"] })

const model = "local-rerank"
const query = "What is the capital of France?"
const documents = [
  "Bread is made of flour, water, salt and yeast.",
  "Berlin is the capital of Germany.",
  "Paris is the capital and most populous city of France.",
  "Lighthouses warn ships of rocks."
]

const v1 = () => new CohereClient({ environment: shared().url, token: shared().key })
const v2 = () => new CohereClientV2({ environment: shared().url, token: shared().key })
const once = { maxRetries: 0 }

describe("cohere-ai, version 1", () => {
  it("ranks texts", async () => {
    const answer = await v1().rerank({ model, query, documents }, once)
    assert.deepStrictEqual(answer.results.slice(0, 2).map(({ index }) => index), [2, 1])
    assert.lengthOf(answer.results, 4)
    for (const { relevanceScore } of answer.results) assert.isTrue(relevanceScore >= 0 && relevanceScore <= 1)
    assert.match(answer.id ?? "", /^[0-9a-f-]{36}$/)
    assert.strictEqual(answer.meta?.billedUnits?.searchUnits, 1)
    assert.strictEqual(answer.meta?.apiVersion?.version, "1")
  })

  it("ranks objects and returns the best ones", async () => {
    const request = {
      model,
      query,
      documents: documents.map((text) => ({ text, title: "a title" })),
      topN: 2,
      returnDocuments: true
    }
    const { results } = await v1().rerank(request, once)
    const title = "a title"
    const best = [{ text: documents[2]!, title }, { text: documents[1]!, title }]
    assert.deepStrictEqual<unknown>(results.map(({ document }) => document), best)
  })

  it("ranks 10,000 documents", async () => {
    const many = Array.from({ length: 10_000 }, (_, number) => `document number ${number}`)
    const { meta, results } = await v1().rerank({ model, query: "number 4711", documents: many, topN: 3 }, once)
    assert.strictEqual(results[0]?.index, 4_711)
    assert.lengthOf(results, 3)
    assert.strictEqual(meta?.billedUnits?.searchUnits, 100)
  })

  it("gets an error that names the field", async () => {
    const error = await v1().rerank({ model, query, documents: [] }, once).catch((error: unknown) => error)
    assert.instanceOf(error, Cohere.BadRequestError)
    assert.deepInclude(error.body, { message: "documents: must be a non-empty string or an array of 1 to 10000 items" })
    const unknown = await v1().rerank({ model: "unheard-of", query, documents }, once).catch((error: unknown) => error)
    assert.instanceOf(unknown, Cohere.NotFoundError)
  })
})

describe("cohere-ai, version 2", () => {
  it("ranks texts", async () => {
    const answer = await v2().rerank({ model, query, documents, topN: 1 }, once)
    assert.deepStrictEqual(answer.results.map(({ index }) => index), [2])
    assert.isAbove(answer.results[0]?.relevanceScore ?? 0, 0.5)
  })

  it("gets an error that names the field", async () => {
    const error = await v2().rerank({ model, query: "", documents }, once).catch((error: unknown) => error)
    assert.instanceOf(error, Cohere.BadRequestError)
    assert.deepInclude(error.body, { message: "query: must be a non-empty string" })
  })
})

describe("the AI SDK", () => {
  const reranking = (name = model) =>
    createCohere({ baseURL: `${shared().url}/v1`, apiKey: shared().key }).reranking(name)

  it("ranks texts", async () => {
    const { ranking, rerankedDocuments } = await rerank({ model: reranking(), query, documents, topN: 2 })
    assert.deepStrictEqual(ranking.map(({ originalIndex }) => originalIndex), [2, 1])
    assert.deepStrictEqual(rerankedDocuments, [documents[2]!, documents[1]!])
  })

  it("gets the gateway's own message for an error", async () => {
    const error = await rerank({ model: reranking("unheard-of"), query, documents, maxRetries: 0 })
      .catch((error: unknown) => error)
    assert.isTrue(APICallError.isInstance(error))
    assert.strictEqual(
      (error as Error).message,
      "The model 'unheard-of' does not exist. GET /v1/models lists the models."
    )
  })
})
