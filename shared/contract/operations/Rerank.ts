/** POST /v1/rerank and POST /v2/rerank: orders documents by their relevance to a query. */
import { Schema } from "effect"
import { atLeast, between, field, JsonObject, ModelName, optional } from "../Fields.ts"
import { rerankOutline } from "../outlines/Outlines.ts"
import type { Operation } from "../Operation.ts"

/** Maximum number of documents in one request. */
const maxDocuments = 10_000

/** A text, or an object with the text in `text` or in several fields. */
const RerankDocument = Schema.Union([Schema.String, JsonObject.check(Schema.isMinProperties(1))])

/** The text to rank: the named fields, or else `text`, or else all fields. Fields other than a lone `text` become lines of YAML. */
export const textOf = (document: typeof RerankDocument.Type, fields?: ReadonlyArray<string> | null): string => {
  if (typeof document === "string") return document
  const { text } = document
  if (!fields && typeof text === "string") return text
  return (fields ?? Object.keys(document)).filter((name) => Object.hasOwn(document, name)).map((name) => {
    const value = document[name]
    return `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`
  }).join("\n")
}

/** A document as results return it. */
export const toReturned = <Document>(document: Document) => typeof document === "string" ? { text: document } : document

export const RerankRequest = Schema.Struct({
  model: ModelName,
  query: field(Schema.NonEmptyString, "Query to compare the documents with."),
  documents: field(
    Schema.Union([
      Schema.NonEmptyString,
      Schema.Array(RerankDocument).check(Schema.isBetweenLength(1, maxDocuments))
    ]),
    "Documents to rank: texts, or objects, which are ranked by their `text`, or by all fields if they have none. A single " +
      "string is one document."
  ),
  rank_fields: optional(
    Schema.Array(Schema.String).check(Schema.isMinLength(1)),
    "Fields of the objects to rank by, in this order."
  ),
  top_n: optional(atLeast(1), "Number of results. Default: all documents."),
  return_documents: optional(Schema.Boolean, "Whether to return each document with its result.", false)
})
export type RerankRequest = typeof RerankRequest.Type

export const RerankResponse = Schema.Struct({
  id: field(Schema.String, "Unique per answer."),
  results: field(
    Schema.Array(Schema.Struct({
      index: field(Schema.Int, "Position of the document in the request."),
      relevance_score: field(between(0, 1), "0 to 1; higher is more relevant. Compare only scores of one request."),
      document: field(
        Schema.optionalKey(JsonObject),
        "The document with all its fields, a text in `text`; with `return_documents`."
      )
    })),
    "Most relevant first."
  ),
  meta: field(
    Schema.Struct({
      api_version: field(
        Schema.Struct({ version: field(Schema.String, "A number, as text.") }),
        "Version of the rerank API that the answer follows."
      ),
      billed_units: field(
        Schema.Struct({ search_units: field(Schema.Int, "Searches, as Cohere bills them.") }),
        "What the request is billed by."
      )
    }),
    "Version and bill."
  )
})
export type RerankResponse = typeof RerankResponse.Type

export const rerank = {
  name: "rerank",
  summary: "Order documents by their relevance to a query",
  paths: ["/v1/rerank", "/v2/rerank"],
  workloads: ["rerank"],
  dialect: "cohere",
  request: RerankRequest,
  outline: rerankOutline,
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
