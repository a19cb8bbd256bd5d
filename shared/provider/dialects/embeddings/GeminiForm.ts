/** Vectors in Gemini's form: one, or a batch. */
import {
  batchEmbedContents,
  BatchEmbedContentsRequest,
  embedContent,
  EmbedContentRequest
} from "../../../contract/operations/embeddings/EmbedContent.ts"
import { inEitherSpelling } from "../../../contract/http/FieldSpelling.ts"
import { carried, type Fate, inBothSpellings, type Losses, meaning } from "../conversation/Losses.ts"
import { comma, type EmbeddingForm, toNumbers } from "./EmbeddingForm.ts"
import type { Purpose } from "./EmbeddingModel.ts"

export const taskTypes: Readonly<Record<Purpose, string>> = {
  search_document: "RETRIEVAL_DOCUMENT",
  search_query: "RETRIEVAL_QUERY",
  classification: "CLASSIFICATION",
  clustering: "CLUSTERING"
}
const purposes = new Map(Object.entries(taskTypes).map(([purpose, task]) => [task, purpose as Purpose]))

const fates = {
  ...carried("model", "taskType", "outputDimensionality"),
  content: { parts: [{ ...carried("text"), ...meaning("inlineData", "fileData") }] }
} satisfies Fate

const textOf = ({ content: { parts } }: EmbedContentRequest, path: string, losses: Losses): string => {
  const text = parts.flatMap(({ text }) => text ? [text] : []).join("\n")
  if (text === "") losses.refuse(`${path}content.parts`, "has no text")
  return text
}

const purposeOf = (task: string | null | undefined, path: string, losses: Losses) => {
  if (!task || task === "TASK_TYPE_UNSPECIFIED") return undefined
  const is = purposes.get(task)
  if (is === undefined) losses.warn(path)
  return is && { is, path }
}

const usageMetadata = (inputTokens: number): string => `"usageMetadata":{"promptTokenCount":${inputTokens}}}`

const dimensionsName = "outputDimensionality"

export const geminiForm: EmbeddingForm<EmbedContentRequest> = {
  operation: embedContent.name,
  request: inEitherSpelling(EmbedContentRequest),
  dimensionsName,
  lists: [],
  fates: inBothSpellings(fates),
  read: (request, _json, losses) => ({
    texts: [textOf(request, "", losses)],
    dimensions: request.outputDimensionality ?? undefined,
    purpose: purposeOf(request.taskType, "taskType", losses),
    extra: {}
  }),
  printer: () => ({
    start: `{"embedding":`,
    vector: (vector) => `{"values":${toNumbers(vector)}}`,
    end: ({ inputTokens }) => `,${usageMetadata(inputTokens)}`
  })
}

const same = ["outputDimensionality", "taskType"] as const

export const geminiBatchForm: EmbeddingForm<BatchEmbedContentsRequest> = {
  operation: batchEmbedContents.name,
  request: inEitherSpelling(BatchEmbedContentsRequest),
  dimensionsName: `requests[0].${dimensionsName}`,
  lists: ["requests"],
  fates: inBothSpellings({ ...carried("model"), requests: [fates] }),
  read: ({ requests }, _json, losses) => {
    const [first] = requests
    requests.forEach((request, index) => {
      for (const name of same) {
        if ((request[name] ?? null) !== (first?.[name] ?? null)) {
          losses.refuse(`requests[${index}].${name}`, "must be the same in all requests for the provider of this model")
        }
      }
    })
    return {
      texts: requests.map((request, index) => textOf(request, `requests[${index}].`, losses)),
      dimensions: first?.outputDimensionality ?? undefined,
      purpose: purposeOf(first?.taskType, "requests[0].taskType", losses),
      extra: {}
    }
  },
  printer: () => ({
    start: `{"embeddings":[`,
    vector: (vector, index) => `${comma(index)}{"values":${toNumbers(vector)}}`,
    end: ({ inputTokens }) => `],${usageMetadata(inputTokens)}`
  })
}
