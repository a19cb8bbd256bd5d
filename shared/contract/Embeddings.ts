/**
 * POST /v1/embeddings and POST /v1/engines/{model}/embeddings: texts and the vectors they become.
 *
 * The second path is the older form of the first: the model stands in the path, and wins over one in the body.
 */
import { Schema } from "effect"
import { optional } from "./Fields.ts"
import type { Operation } from "./Operation.ts"

/** Texts in one request. */
const maxInputs = 2_048
/** The longest vector that can be asked for. */
const maxDimensions = 4_096

const common = {
  /** One text or several, none of them empty. Token arrays are not taken: what they mean depends on the model. */
  input: Schema.Union([
    Schema.NonEmptyString,
    Schema.Array(Schema.NonEmptyString).check(Schema.isBetweenLength(1, maxInputs))
  ]),
  /** `base64` is the vector as little-endian 32-bit floats. Default `float`. */
  encoding_format: optional(Schema.Literals(["float", "base64"])),
  /** Length of the vectors; the model's own where absent. */
  dimensions: optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: maxDimensions })))
}

export const EmbeddingsRequest = Schema.Struct({ model: Schema.NonEmptyString, ...common })
export type EmbeddingsRequest = typeof EmbeddingsRequest.Type

export const EngineEmbeddingsRequest = Schema.Struct({ model: optional(Schema.String), ...common })
export type EngineEmbeddingsRequest = typeof EngineEmbeddingsRequest.Type

export const EmbeddingList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Schema.Struct({
    object: Schema.Literal("embedding"),
    /** Of the text in `input`. */
    index: Schema.Int,
    embedding: Schema.Union([Schema.Array(Schema.Finite), Schema.String])
  })),
  model: Schema.String,
  usage: Schema.Struct({ prompt_tokens: Schema.Int, total_tokens: Schema.Int })
})

export const embeddings = {
  name: "embeddings",
  summary: "Turn texts into vectors",
  paths: ["/v1/embeddings"],
  workloads: ["embeddings"],
  dialect: "openai",
  request: EmbeddingsRequest,
  response: EmbeddingList,
  streams: () => false
} satisfies Operation

export const engineEmbeddings = {
  name: "engines.embeddings",
  summary: "Turn texts into vectors, with the model named in the path",
  paths: ["/v1/engines/{model}/embeddings"],
  workloads: ["embeddings"],
  dialect: "openai",
  request: EngineEmbeddingsRequest,
  response: EmbeddingList,
  streams: () => false
} satisfies Operation
