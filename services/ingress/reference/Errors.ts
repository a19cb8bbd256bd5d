/** The errors that routes can answer with, in the dialect of each, as `ErrorEnvelope` really makes them. */
import { Schema } from "effect"
import {
  AnswerLost,
  InternalError,
  InvalidRequest,
  ModelNotFound,
  PoisonJob,
  ProviderFailed,
  ProviderRateLimited,
  ProviderRejected,
  ProviderTimeout,
  QueueFull,
  QueueTimeout,
  ReferenceNotFound,
  Unavailable,
  WorkerLost
} from "../../../shared/contract/JobError.ts"
import type { Dialect, Workload } from "../../../shared/contract/Operation.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import {
  BodyTooLarge,
  BudgetSpent,
  FileNotFound,
  IdempotencyKeyReused,
  KeyInactive,
  KeyInvalid,
  KeyMissing,
  LimitReached,
  LinkRefused,
  MediaTypeUnsupported,
  ModelNotAllowed,
  RangeNotSatisfiable,
  type RequestError,
  RequestUnreadable,
  TaskNotCompleted,
  TaskNotFound,
  TokensOverLimit
} from "../errors/IngressError.ts"
import { maxBodyBytes } from "../request/RequestBody.ts"
import * as Headers from "./Headers.ts"
import { ref } from "./Schemas.ts"

const message = Schema.String.annotateKey({ description: "What happened, for people." })
const type = Schema.String.annotateKey({ description: "The kind of error." })
const param = Schema.NullOr(Schema.String).annotateKey({
  description: "The path of the field that is wrong, as in `messages[0].content`."
})
const code = Schema.NullOr(Schema.String).annotateKey({ description: "Which error it is, for programs." })

const fields = { message, type, param, code }

const envelopes: Readonly<Record<Dialect, { readonly name: string; readonly schema: Schema.Top }>> = {
  openai: { name: "Error", schema: Schema.Struct({ error: Schema.Struct(fields) }) },
  cohere: { name: "CohereError", schema: Schema.Struct({ message, error: Schema.Struct(fields) }) },
  anthropic: {
    name: "MessagesError",
    schema: Schema.Struct({
      type: Schema.Literal("error"),
      error: Schema.Struct(fields),
      request_id: Schema.String.annotateKey({ description: "As in the header `x-request-id`." })
    })
  },
  gemini: {
    name: "GeminiError",
    schema: Schema.Struct({
      error: Schema.Struct({
        code: Schema.Int.annotateKey({ description: "The status of the answer." }),
        message,
        status: Schema.String.annotateKey({ description: "Google's name of the status." }),
        type,
        param
      })
    })
  }
}

/** The envelopes by their names. */
export const schemas = Object.fromEntries(Object.values(envelopes).map(({ name, schema }) => [name, schema]))

const unreadable = (message: string, code: string) => new InvalidRequest({ param: null, message, code })

/** Whatever needs a key. */
export const ofKeys: ReadonlyArray<RequestError> = [
  new KeyMissing(),
  new KeyInvalid(),
  new KeyInactive({ reason: "disabled" }),
  new KeyInactive({ reason: "expired" }),
  new Unavailable({ retryAfterMs: 1_000 })
]

/** What is no whole HTTP request. */
export const ofConnections: ReadonlyArray<RequestError> = [
  new RequestUnreadable({ reason: "timeout" }),
  new RequestUnreadable({ reason: "headers" })
]

/** Whatever does something. */
export const ofAll: ReadonlyArray<RequestError> = [new InternalError()]

/** A request with a body, before anybody works on it. */
export const ofRequests: ReadonlyArray<RequestError> = [
  unreadable("The request body is not valid JSON", "invalid_json"),
  InvalidRequest.at("model", "is required", "invalid_value"),
  new ModelNotAllowed({ model: "gpt-5" }),
  new ModelNotFound({ model: "gpt-5" }),
  new BodyTooLarge({ limitBytes: maxBodyBytes }),
  new MediaTypeUnsupported(),
  new LimitReached({ limit: "requests", most: 600, retryAfterMs: 2_000 }),
  new TokensOverLimit({ tokens: 8_000, fields: ["max_tokens", "n"], most: 3_000 }),
  new BudgetSpent({ budgetUsd: 250, retryAfterMs: 864_000_000 })
]

/** Where a header must name the version of the format. */
export const ofVersions: ReadonlyArray<RequestError> = [
  InvalidRequest.at(
    "vendor-version",
    "the header vendor-version or anthropic-version is required, a date such as 2023-06-01",
    "invalid_version"
  )
]

/** Where a request may be a form. */
export const ofForms: ReadonlyArray<RequestError> = [
  unreadable("The request body is not a valid form with the boundary that its Content-Type names", "invalid_form")
]

const provider = "openai"

const ofChats: ReadonlyArray<RequestError> = [
  InvalidRequest.at("logit_bias", "is not carried over", "not_translatable"),
  InvalidRequest.at("messages[0].encrypted_content", "was changed, or made for another API key", "invalid_compaction"),
  InvalidRequest.at("messages[0].content[0].image_url.url", "did not answer with a file", "invalid_url"),
  new ReferenceNotFound({ param: "previous_response_id" })
]

const ofPictures: ReadonlyArray<RequestError> = [InvalidRequest.at("image", "is damaged", "invalid_image")]

/** What workers of a workload find wrong with a request. */
export const ofWorkloads: Readonly<Record<Workload, ReadonlyArray<RequestError>>> = {
  chat: ofChats,
  images: ofPictures,
  video: [],
  embeddings: [],
  rerank: [],
  speech: []
}

/** Between the queue and the provider's answer. */
export const ofJobs: ReadonlyArray<RequestError> = [
  InvalidRequest.at("model", "'gpt-5' does not serve embeddings", "operation_not_supported"),
  InvalidRequest.at("dimensions", "must be left out: this model has vectors of one length", "not_supported"),
  new ProviderRejected({
    provider,
    status: 400,
    message: "The request is longer than the model's context",
    type: null,
    param: "messages",
    code: "context_length_exceeded"
  }),
  new ProviderRateLimited({ provider, retryAfterMs: 2_000 }),
  new QueueFull({ retryAfterMs: 2_000 }),
  new ProviderFailed({ provider, reason: "unreachable", status: null, retryAfterMs: null }),
  new WorkerLost(),
  new PoisonJob(),
  new AnswerLost(),
  new QueueTimeout({ retryAfterMs: 1_000 }),
  new ProviderTimeout({ provider, phase: "first byte" })
]

/** Where a task is made. */
export const ofNewTasks: ReadonlyArray<RequestError> = [
  InvalidRequest.at("idempotency-key", "must be 1 to 255 visible ASCII characters", "invalid_idempotency_key"),
  new IdempotencyKeyReused()
]

export const ofTasks: ReadonlyArray<RequestError> = [new TaskNotFound()]

/** Where the result of a task is fetched. */
export const ofContents: ReadonlyArray<RequestError> = [
  new TaskNotCompleted({ status: "in_progress" }),
  new LinkRefused({ reason: "expired" }),
  new LinkRefused({ reason: "forged" }),
  new RangeNotSatisfiable({ size: 48_213 })
]

/** Where a file is fetched from its signed address. */
export const ofFiles: ReadonlyArray<RequestError> = [
  new LinkRefused({ reason: "expired" }),
  new LinkRefused({ reason: "forged" }),
  new FileNotFound(),
  new Unavailable({ retryAfterMs: 1_000 })
]

export const ofModels: ReadonlyArray<RequestError> = [new ModelNotFound({ model: "gpt-5" })]

const exampleId = "req_66235382-a716-4d18-bea8-b384d455381f"

/** The answers of these errors by their statuses, each with the codes that it can have, and with more headers. */
export const responses = (dialect: Dialect, errors: ReadonlyArray<RequestError>, more: object = {}) => {
  const byStatus = Map.groupBy(errors, (error) => ErrorEnvelope.toText(dialect, error, exampleId).status)
  return Object.fromEntries([...byStatus].map(([status, errors]) => {
    const examples = errors.map((error) => {
      const value: unknown = JSON.parse(ErrorEnvelope.toText(dialect, error, exampleId).body)
      return [ErrorEnvelope.toFields(error).code ?? error._tag, { summary: error.message, value }] as const
    })
    const headers = errors.flatMap((error) => Object.keys(ErrorEnvelope.toResponse(dialect, error, exampleId).headers))
    return [status, {
      description: [...new Set(examples.map(([code]) => `\`${code}\``))].join(", "),
      headers: { ...Headers.of.every, ...(status === 401 ? {} : more), ...Headers.named(headers) },
      content: {
        "application/json": { schema: ref(envelopes[dialect].name), examples: Object.fromEntries(examples) }
      }
    }] as const
  }))
}
