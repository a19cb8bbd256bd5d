/**
 * What ingress checks of a request that a provider may get unchanged: the fields that choose the model, the form of the answer and the
 * answers' sizes, and the outer shape of the conversation. The provider judges the rest, and knows fields and values that are newer than the
 * gateway. Workers that translate a request decode it by the schema of its operation.
 */
import { Schema } from "effect"
import { formField, formFile, JsonObject, ModelName, optional, Stream } from "../Fields.ts"

/** A number that limits read. A provider that accepts texts instead of numbers would bypass them. */
const Amount = optional(Schema.Finite)

/** Messages or items, which the gateway reads for its sessions and compactions. */
const Objects = Schema.Array(JsonObject)

/** The prompt of text completions: a text, tokens, or several of these. Its number of prompts counts towards limits. */
const Prompt = Schema.Union([Schema.String, Schema.Array(Schema.Unknown)])

/** A text, tokens, or several of these: only the provider knows which tokens its model has. */
const embeddingsInput = { input: Prompt }

export const embeddingsOutline = Schema.Struct({ model: ModelName, ...embeddingsInput })
export const engineEmbeddingsOutline = Schema.Struct({ model: optional(Schema.String), ...embeddingsInput })

export const chatOutline = Schema.Struct({
  model: ModelName,
  messages: Objects,
  stream: Stream,
  n: Amount,
  max_tokens: Amount,
  max_completion_tokens: Amount
})

export const completionsOutline = Schema.Struct({
  model: ModelName,
  prompt: optional(Prompt),
  stream: Stream,
  n: Amount,
  best_of: Amount,
  max_tokens: Amount
})

export const messagesOutline = Schema.Struct({
  model: ModelName,
  messages: Objects,
  stream: Stream,
  max_tokens: Amount,
  thinking: optional(Schema.Struct({ budget_tokens: Amount }))
})

/** The gateway stores responses and their items, and keeps no conversations. */
export const responsesOutline = Schema.Struct({
  model: ModelName,
  input: optional(Schema.Union([Schema.String, Objects])),
  stream: Stream,
  max_output_tokens: Amount,
  include: optional(Schema.Array(Schema.Unknown)),
  store: optional(Schema.Boolean),
  previous_response_id: optional(Schema.String),
  conversation: Schema.optionalKey(Schema.Null),
  background: optional(Schema.Boolean)
})

export const contentsOutline = Schema.Struct({
  model: optional(Schema.String),
  contents: Objects,
  generationConfig: optional(Schema.Struct({
    candidateCount: Amount,
    maxOutputTokens: Amount,
    thinkingConfig: optional(Schema.Struct({ thinkingBudget: Amount }))
  }))
})

/** Limits read the number of pictures, which is in either place. */
export const imagesOutline = Schema.Struct({
  model: ModelName,
  stream: Stream,
  n: Amount,
  parameters: optional(Schema.Struct({ n: Amount })),
  input: optional(JsonObject)
})

/** Speech is billed by the characters of its text. */
export const speechOutline = Schema.Struct({
  model: ModelName,
  input: Schema.String,
  stream_format: optional(Schema.String)
})

export const soundOutline = Schema.Struct({ model: ModelName, file: Schema.NonEmptyString, stream: Stream })

const flag = formField(Schema.Boolean)
const file = Schema.Union([formFile, Schema.NonEmptyString])

/** Forms pass with all their fields; ingress reads only these. */
export const soundForm = Schema.fromFormData(Schema.Struct({ model: ModelName, file, stream: flag }))
export const imagesForm = Schema.fromFormData(
  Schema.Struct({ model: ModelName, stream: flag, n: formField(Schema.Finite) })
)

export const moderationsOutline = Schema.Struct({ model: optional(Schema.NonEmptyString) })

/** A reranker reads the query again with each document. */
export const rerankOutline = Schema.Struct({
  model: ModelName,
  query: Schema.Union([Schema.String, JsonObject]),
  documents: Schema.Union([Schema.String, Schema.Array(Schema.Unknown)])
})

export const embedOutline = Schema.Struct({ model: ModelName })

/** Each text of a batch is a request of its own. */
export const contentOutline = Schema.Struct({ model: optional(Schema.String), content: optional(JsonObject) })
export const contentsOfBatchOutline = Schema.Struct({
  model: optional(Schema.String),
  requests: Schema.Array(JsonObject)
})

export const countedContentsOutline = Schema.Struct({
  model: optional(Schema.String),
  contents: Schema.optionalKey(Objects),
  generateContentRequest: optional(JsonObject)
})
