/**
 * POST /v1/embeddings and POST /v1/engines/{model}/embeddings: texts to vectors.
 *
 * The second path is older: the model in the path overrides the one in the body.
 */
import { Schema } from "effect"
import { AnsweringModel, constant, field, integer, ModelName, optional, Texts, tokens } from "../../Fields.ts"
import type { Operation } from "../../Operation.ts"
import { embeddingsOutline, engineEmbeddingsOutline } from "../../outlines/Outlines.ts"
import { EstimatedTokens } from "../../TokenUsage.ts"

/** Maximum number of dimensions of any model. */
export const maxDimensions = 4_096

const common = {
  input: Texts,
  encoding_format: optional(
    Schema.Literals(["float", "base64"]),
    "`base64` encodes little-endian 32-bit floats.",
    "float"
  ),
  dimensions: optional(integer(1, maxDimensions), "Length of the vectors. Default: the model's own.")
}

export const EmbeddingsRequest = Schema.Struct({ model: ModelName, ...common })
export type EmbeddingsRequest = typeof EmbeddingsRequest.Type

export const EngineEmbeddingsRequest = Schema.Struct({
  model: optional(Schema.String, "Ignored: the path names the model."),
  ...common
})
export type EngineEmbeddingsRequest = typeof EngineEmbeddingsRequest.Type

export const EmbeddingList = Schema.Struct({
  object: constant("list", "A list of vectors."),
  data: field(
    Schema.Array(Schema.Struct({
      object: constant("embedding", "A vector."),
      index: field(Schema.Int, "Position of the text in `input`."),
      embedding: field(
        Schema.Union([Schema.Array(Schema.Finite), Schema.String]),
        "The vector: numbers, or base64 if `encoding_format` asks for it."
      )
    })),
    "One vector for each text, in the order of `input`."
  ),
  model: AnsweringModel,
  usage: field(
    Schema.Struct({
      prompt_tokens: tokens("Tokens of the texts."),
      total_tokens: tokens("The same: vectors have no tokens."),
      estimated_tokens: EstimatedTokens
    }),
    "Tokens that the request consumed."
  )
})

export const embeddings = {
  name: "embeddings",
  summary: "Turn texts into vectors",
  paths: ["/v1/embeddings"],
  workloads: ["embeddings"],
  dialect: "openai",
  request: EmbeddingsRequest,
  outline: embeddingsOutline,
  response: EmbeddingList,
  streams: () => false,
  description:
    "Each text becomes one vector, in the order of `input`. The vectors of the built-in `local-embedding` are lexical: " +
    "texts that share words are similar, texts that say the same in other words are not.",
  examples: {
    several: {
      summary: "Several texts",
      model: "local-embedding",
      body: { input: ["one", "two"], dimensions: 4 },
      answer: {
        object: "list",
        data: [
          { object: "embedding", index: 0, embedding: [0, 0, 0, -1] },
          { object: "embedding", index: 1, embedding: [0, 0.6, 0, 0.8] }
        ],
        model: "local-embedding",
        usage: { prompt_tokens: 2, total_tokens: 2 }
      }
    },
    base64: {
      summary: "One text, its vector as base64",
      model: "local-embedding",
      body: { input: "one", dimensions: 4, encoding_format: "base64" },
      answer: {
        object: "list",
        data: [{ object: "embedding", index: 0, embedding: "AAAAAAAAAAAAAAAAAACAvw==" }],
        model: "local-embedding",
        usage: { prompt_tokens: 1, total_tokens: 1 }
      }
    }
  }
} satisfies Operation

export const engineEmbeddings = {
  ...embeddings,
  name: "engines.embeddings",
  summary: "Turn texts into vectors, with the model in the path",
  paths: ["/v1/engines/{model}/embeddings"],
  request: EngineEmbeddingsRequest,
  outline: engineEmbeddingsOutline,
  description: "Like `/v1/embeddings`, with the model in the path, which overrides the one in the body.",
  examples: {
    several: embeddings.examples.several,
    repeated: {
      summary: "The model in the body as well",
      model: "local-embedding",
      body: { model: "local-embedding", input: "one" }
    }
  }
} satisfies Operation
