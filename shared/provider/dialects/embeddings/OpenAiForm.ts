/** Vectors in OpenAI's form. */
import type { Schema } from "effect"
import {
  embeddings,
  EmbeddingsRequest,
  engineEmbeddings,
  EngineEmbeddingsRequest
} from "../../../contract/operations/embeddings/Embeddings.ts"
import { unknownFields } from "../../json/UnknownFields.ts"
import { toEmbeddingUsage } from "../openai/OpenAiUsage.ts"
import { comma, type EmbeddingForm, toBase64, toNumbers } from "./EmbeddingForm.ts"

type Request = EmbeddingsRequest | EngineEmbeddingsRequest

const known = new Set(Object.keys(EmbeddingsRequest.fields))

const form = (operation: string, request: Schema.Codec<Request, unknown>): EmbeddingForm<Request> => ({
  operation,
  request,
  dimensionsName: "dimensions",
  lists: ["input"],
  read: ({ dimensions, input }, json) => ({
    texts: typeof input === "string" ? [input] : input,
    dimensions: dimensions ?? undefined,
    extra: unknownFields(json, known)
  }),
  printer: ({ encoding_format }) => {
    const print = encoding_format === "base64" ? toBase64 : toNumbers
    return {
      start: `{"object":"list","data":[`,
      vector: (vector, index) => `${comma(index)}{"object":"embedding","index":${index},"embedding":${print(vector)}}`,
      end: (usage, model) => `],"model":${JSON.stringify(model)},"usage":${JSON.stringify(toEmbeddingUsage(usage))}}`
    }
  }
})

export const openAiForm = form(embeddings.name, EmbeddingsRequest)
export const openAiEngineForm = form(engineEmbeddings.name, EngineEmbeddingsRequest)
