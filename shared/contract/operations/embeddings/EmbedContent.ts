/**
 * POST /v1beta/models/{model}:embedContent and POST /v1beta/models/{model}:batchEmbedContents: texts to vectors, in Gemini's
 * format.
 */
import { Schema } from "effect"
import { field, integer, JsonObject, optional, tokens } from "../../Fields.ts"
import { contentOutline, contentsOfBatchOutline } from "../../outlines/Outlines.ts"
import type { Operation } from "../../Operation.ts"
import { translationHeader } from "../../ChatHeaders.ts"
import { maxDimensions } from "./Embeddings.ts"

const maxRequests = 2_048

const Part = Schema.Struct({
  text: optional(Schema.String, "A text."),
  inlineData: optional(JsonObject, "A picture, a sound or a document, for models of Gemini that embed it."),
  fileData: optional(JsonObject, "The same by its URI.")
})

const one = {
  model: optional(Schema.String, "Ignored: the path names the model."),
  content: field(
    Schema.Struct({
      parts: field(Schema.Array(Part).check(Schema.isMinLength(1)), "Make one vector together."),
      role: optional(Schema.String, "Has no effect.")
    }),
    "What to embed."
  ),
  taskType: optional(
    Schema.String,
    "What the vector is for, such as `RETRIEVAL_QUERY` or `RETRIEVAL_DOCUMENT`. Only some models use it."
  ),
  title: optional(Schema.String, "Title of a document. Only Gemini uses it."),
  outputDimensionality: optional(integer(1, maxDimensions), "Length of the vector. Default: the model's own.")
}

export const EmbedContentRequest = Schema.Struct(one)
export type EmbedContentRequest = typeof EmbedContentRequest.Type

export const BatchEmbedContentsRequest = Schema.Struct({
  model: one.model,
  requests: field(
    Schema.Array(EmbedContentRequest).check(Schema.isBetweenLength(1, maxRequests)),
    "One for each vector. Providers of other formats need the same `taskType` and `outputDimensionality` in all of them."
  )
})
export type BatchEmbedContentsRequest = typeof BatchEmbedContentsRequest.Type

const Vector = Schema.Struct({ values: field(Schema.Array(Schema.Finite), "The vector.") })
const usageMetadata = field(
  Schema.optionalKey(Schema.Struct({ promptTokenCount: tokens("Tokens of the texts.") })),
  "Tokens that the request consumed. Some models of Gemini do not report them."
)

const text = (text: string) => ({ content: { parts: [{ text }] } })

export const embedContent = {
  name: "embedContent",
  summary: "Turn parts into a vector",
  paths: ["/v1beta/models/{model}:embedContent", "/v1/models/{model}:embedContent"],
  workloads: ["embeddings"],
  dialect: "gemini",
  request: EmbedContentRequest,
  outline: contentOutline,
  response: Schema.Struct({ embedding: field(Vector, "The vector of all parts."), usageMetadata }),
  streams: () => false,
  headers: [translationHeader],
  description: "Every provider of embeddings serves this format. Only Gemini embeds anything but texts.",
  examples: {
    text: {
      summary: "A text",
      model: "local-embedding",
      body: { ...text("one"), outputDimensionality: 4 },
      answer: { embedding: { values: [0, 0, 0, -1] }, usageMetadata: { promptTokenCount: 1 } }
    }
  }
} satisfies Operation

export const batchEmbedContents = {
  ...embedContent,
  name: "batchEmbedContents",
  summary: "Turn parts into several vectors",
  paths: ["/v1beta/models/{model}:batchEmbedContents", "/v1/models/{model}:batchEmbedContents"],
  request: BatchEmbedContentsRequest,
  outline: contentsOfBatchOutline,
  response: Schema.Struct({
    embeddings: field(Schema.Array(Vector), "One vector for each of the `requests`, in their order."),
    usageMetadata
  }),
  examples: {
    texts: {
      summary: "Several texts",
      model: "local-embedding",
      body: { requests: ["one", "two"].map((each) => ({ ...text(each), outputDimensionality: 4 })) },
      answer: {
        embeddings: [{ values: [0, 0, 0, -1] }, { values: [0, 0.6, 0, 0.8] }],
        usageMetadata: { promptTokenCount: 2 }
      }
    }
  }
} satisfies Operation
