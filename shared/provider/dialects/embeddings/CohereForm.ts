/** Vectors in Cohere's form: in one or several encodings. */
import { randomUUID } from "node:crypto"
import { embed, EmbedRequest } from "../../../contract/operations/embeddings/Embed.ts"
import { carried, type Losses, meaning } from "../conversation/Losses.ts"
import { comma, type EmbeddingForm, toBase64, toNumbers } from "./EmbeddingForm.ts"
import type { Purpose, Vector } from "./EmbeddingModel.ts"

const purposes: ReadonlyArray<string> = [
  "search_document",
  "search_query",
  "classification",
  "clustering"
] satisfies ReadonlyArray<Purpose>

const isPurpose = (type: string): type is Purpose => purposes.includes(type)

const encodings: Readonly<Record<string, (vector: Vector) => string>> = { float: toNumbers, base64: toBase64 }

const encodingsOf = ({ embedding_types: types }: EmbedRequest) => [...new Set(types ?? ["float"])]

/** The texts of `texts`, or of `inputs`. */
const textsOf = ({ inputs, texts }: EmbedRequest, losses: Losses): ReadonlyArray<string> => {
  if (texts) {
    if (inputs) losses.refuse("inputs", "must be left out beside `texts`")
    return texts
  }
  return (inputs ?? []).map(({ content }) => content.map((part) => part.type === "text" ? part.text : "").join("\n"))
}

export const cohereForm: EmbeddingForm<EmbedRequest> = {
  operation: embed.name,
  request: EmbedRequest,
  dimensionsName: "output_dimension",
  lists: ["texts", "inputs"],
  fates: {
    ...carried("model", "input_type", "texts", "output_dimension", "embedding_types"),
    ...meaning("images"),
    inputs: [{ content: [{ ...carried("type", "text"), ...meaning("image_url") }] }]
  },
  read: (request, _json, losses) => {
    const { input_type: type, output_dimension: dimensions } = request
    encodingsOf(request).forEach((each, index) => {
      if (encodings[each] === undefined) losses.refuse(`embedding_types[${index}]`)
    })
    if (!isPurpose(type)) losses.warn("input_type")
    return {
      texts: textsOf(request, losses),
      dimensions: dimensions ?? undefined,
      purpose: isPurpose(type) ? { is: type, path: "input_type" } : undefined,
      extra: {}
    }
  },
  printer: (request, texts) => {
    const [first = "float", ...others] = encodingsOf(request)
    const kept = others.map((): Array<string> => [])
    return {
      start: `{"id":"${randomUUID()}","response_type":"embeddings_by_type","embeddings":{"${first}":[`,
      vector: (vector, index) => {
        others.forEach((other, at) => kept[at]?.push(encodings[other]?.(vector) ?? ""))
        return comma(index) + (encodings[first]?.(vector) ?? "")
      },
      end: ({ inputTokens }) =>
        `]${others.map((other, at) => `,"${other}":[${kept[at]?.join(",")}]`).join("")}},"texts":${
          JSON.stringify(texts)
        },"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":${inputTokens}}}}`
    }
  }
}
