/** POST /v1/rerank and POST /v2/rerank: documents, and how relevant each is to a query. */
import { Schema } from "effect"
import { optional } from "./Fields.ts"
import type { Operation } from "./Operation.ts"

/** Documents in one request. */
const maxDocuments = 10_000

/** A text, or an object whose `text` is what is judged. */
export const RerankDocument = Schema.Union([Schema.String, Schema.Struct({ text: Schema.String })])

export const RerankRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  query: Schema.NonEmptyString,
  /** A string alone is one document. */
  documents: Schema.Union([
    Schema.NonEmptyString,
    Schema.Array(RerankDocument).check(Schema.isBetweenLength(1, maxDocuments))
  ]),
  /** How many results there may be, the best ones; all where absent. */
  top_n: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))),
  /** Whether each result holds its document. Default false. */
  return_documents: optional(Schema.Boolean)
})
export type RerankRequest = typeof RerankRequest.Type

export const RerankResponse = Schema.Struct({
  id: Schema.String,
  /** The most relevant first. */
  results: Schema.Array(Schema.Struct({
    /** Of the document in the request. */
    index: Schema.Int,
    /** 0 to 1. */
    relevance_score: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
    document: Schema.optionalKey(Schema.Struct({ text: Schema.String }))
  })),
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
  streams: () => false
} satisfies Operation
