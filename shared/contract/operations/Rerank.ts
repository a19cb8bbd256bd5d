/** POST /v1/rerank and POST /v2/rerank: orders documents by their relevance to a query. */
import { Schema } from "effect"
import { atLeast, between, ModelName, optional } from "../Fields.ts"
import type { Operation } from "../Operation.ts"

/** Documents in one request. */
const maxDocuments = 10_000

/** A text, or an object with the text in `text`. */
export const RerankDocument = Schema.Union([Schema.String, Schema.Struct({ text: Schema.String })])

export const RerankRequest = Schema.Struct({
  model: ModelName,
  query: Schema.NonEmptyString.annotateKey({ description: "Query to compare the documents with." }),
  documents: Schema.Union([
    Schema.NonEmptyString,
    Schema.Array(RerankDocument).check(Schema.isBetweenLength(1, maxDocuments))
  ]).annotateKey({ description: "A single string is one document." }),
  top_n: optional(atLeast(1), "Number of results. Default: all documents."),
  return_documents: optional(Schema.Boolean, "Whether to return each document with its result. Default false.")
})
export type RerankRequest = typeof RerankRequest.Type

export const RerankResponse = Schema.Struct({
  id: Schema.String,
  results: Schema.Array(Schema.Struct({
    index: Schema.Int.annotateKey({ description: "Position of the document in the request." }),
    relevance_score: between(0, 1).annotateKey({ description: "0 to 1." }),
    document: Schema.optionalKey(Schema.Struct({ text: Schema.String }))
  })).annotateKey({ description: "Most relevant first." }),
  meta: Schema.Struct({
    api_version: Schema.Struct({ version: Schema.String }),
    billed_units: Schema.Struct({ search_units: Schema.Int })
  })
})
export type RerankResponse = typeof RerankResponse.Type

export const rerank = {
  name: "rerank",
  summary: "Order documents by their relevance to a query",
  paths: ["/v1/rerank", "/v2/rerank"],
  workloads: ["rerank"],
  dialect: "cohere",
  request: RerankRequest,
  response: RerankResponse,
  streams: () => false,
  description: "Returns the most relevant document first.",
  examples: {
    texts: {
      summary: "Documents as texts",
      model: "local-rerank",
      body: { query: "Who keeps bees?", documents: ["A beekeeper", "A lighthouse keeper"], top_n: 1 },
      answer: {
        id: "94a5386e-42f3-450d-9270-f049b94456d1",
        results: [{ index: 0, relevance_score: 0.0876 }],
        meta: { api_version: { version: "1" }, billed_units: { search_units: 1 } }
      }
    },
    objects: {
      summary: "Documents as objects, returned with the results",
      model: "local-rerank",
      body: {
        query: "Who keeps bees?",
        documents: [{ text: "A beekeeper" }, { text: "A lighthouse keeper" }],
        return_documents: true
      },
      answer: {
        id: "893076ff-26af-4489-af37-2fbdaa847027",
        results: [
          { index: 0, relevance_score: 0.0876, document: { text: "A beekeeper" } },
          { index: 1, relevance_score: 0.0421, document: { text: "A lighthouse keeper" } }
        ],
        meta: { api_version: { version: "1" }, billed_units: { search_units: 1 } }
      }
    }
  }
} satisfies Operation
