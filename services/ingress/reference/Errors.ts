/** The errors of each route, in its dialect, made by `ErrorEnvelope` like the real ones. */
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
import * as RequestBody from "../request/RequestBody.ts"
import * as Headers from "./Headers.ts"
import { ref } from "./Schemas.ts"

const message = Schema.String.annotateKey({ description: "What is wrong and what to do, for people." })
const type = Schema.String.annotateKey({ description: "The kind of error." })
const param = Schema.NullOr(Schema.String).annotateKey({
  description: "The path of the wrong field, such as `messages[0].content`."
})
const code = Schema.NullOr(Schema.String).annotateKey({ description: "The error code, for programs." })

const fields = { message, type, param, code }

const envelopes: Readonly<Record<Dialect, { readonly name: string; readonly schema: Schema.Top }>> = {
  openai: { name: "Error", schema: Schema.Struct({ error: Schema.Struct(fields) }) },
  cohere: { name: "CohereError", schema: Schema.Struct({ message, error: Schema.Struct(fields) }) },
  anthropic: {
    name: "MessagesError",
    schema: Schema.Struct({
      type: Schema.Literal("error"),
      error: Schema.Struct(fields),
      request_id: Schema.String.annotateKey({ description: "The value of the header `x-request-id`." })
    })
  },
  gemini: {
    name: "GeminiError",
    schema: Schema.Struct({
      error: Schema.Struct({
        code: Schema.Int.annotateKey({ description: "The HTTP status." }),
        message,
        status: Schema.String.annotateKey({ description: "Google's name for the status." }),
        type,
        param
      })
    })
  }
}

/** The schema of each envelope, by name. */
export const schemas = Object.fromEntries(Object.values(envelopes).map(({ name, schema }) => [name, schema]))

/** Errors of every route that needs a key. */
export const ofKeys: ReadonlyArray<RequestError> = [
  new KeyMissing(),
  new KeyInvalid(),
  new KeyInactive({ reason: "disabled" }),
  new KeyInactive({ reason: "expired" }),
  new Unavailable({ retryAfterMs: 1_000 })
]

/** Errors of incomplete HTTP requests. */
export const ofConnections: ReadonlyArray<RequestError> = [
  new RequestUnreadable({ reason: "timeout" }),
  new RequestUnreadable({ reason: "headers" })
]

export const ofAll: ReadonlyArray<RequestError> = [new InternalError()]

/** Errors of a request with a body, before a job exists. */
export const ofRequests: ReadonlyArray<RequestError> = [
  RequestBody.notJson,
  InvalidRequest.at("model", "is required", "invalid_value"),
  new ModelNotAllowed({ model: "gpt-5" }),
  new ModelNotFound({ model: "gpt-5" }),
  new BodyTooLarge({ limitBytes: RequestBody.maxBodyBytes }),
  new MediaTypeUnsupported(),
  new LimitReached({ limit: "requests", max: 600, retryAfterMs: 2_000 }),
  new TokensOverLimit({ tokens: 8_000, fields: ["max_tokens", "n"], max: 3_000 }),
  new BudgetSpent({ budgetUsd: 250, retryAfterMs: 864_000_000 })
]

/** Errors of operations that require a header with the version of the format. */
export const ofVersions: ReadonlyArray<RequestError> = [
  InvalidRequest.at(
    "vendor-version",
    "the header vendor-version or anthropic-version is required. Send a date such as 2023-06-01",
    "invalid_version"
  )
]

/** Errors of operations that accept forms. */
export const ofForms: ReadonlyArray<RequestError> = [RequestBody.notAForm]

const provider = "openai"

const ofChats: ReadonlyArray<RequestError> = [
  InvalidRequest.at("logit_bias", "is not carried over", "not_translatable"),
  InvalidRequest.at("messages[0].encrypted_content", "was changed, or made for another API key", "invalid_compaction"),
  InvalidRequest.at("messages[0].content[0].image_url.url", "did not answer with a file", "invalid_url"),
  new ReferenceNotFound({ param: "previous_response_id" })
]

const ofPictures: ReadonlyArray<RequestError> = [InvalidRequest.at("image", "is damaged", "invalid_image")]

/** Request errors that workers of a workload report. */
export const ofWorkloads: Readonly<Record<Workload, ReadonlyArray<RequestError>>> = {
  chat: ofChats,
  images: ofPictures,
  video: [],
  embeddings: [],
  rerank: [],
  speech: []
}

/** Errors between the queue and the provider's answer. */
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

/** Errors of creating a task. */
export const ofNewTasks: ReadonlyArray<RequestError> = [
  InvalidRequest.at("idempotency-key", "must be 1 to 255 visible ASCII characters", "invalid_idempotency_key"),
  new IdempotencyKeyReused()
]

export const ofTasks: ReadonlyArray<RequestError> = [new TaskNotFound()]

/** Errors of fetching a task's result. */
export const ofContents: ReadonlyArray<RequestError> = [
  new TaskNotCompleted({ status: "in_progress" }),
  new LinkRefused({ reason: "expired" }),
  new LinkRefused({ reason: "forged" }),
  new RangeNotSatisfiable({ size: 48_213 })
]

/** Errors of fetching a file from its signed URL. */
export const ofFiles: ReadonlyArray<RequestError> = [
  new LinkRefused({ reason: "expired" }),
  new LinkRefused({ reason: "forged" }),
  new FileNotFound(),
  new Unavailable({ retryAfterMs: 1_000 })
]

export const ofModels: ReadonlyArray<RequestError> = [new ModelNotFound({ model: "gpt-5" })]

const exampleId = "req_66235382-a716-4d18-bea8-b384d455381f"

/** The responses of these errors by status, each with its possible codes. `more` are further headers, except for 401. */
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
