/**
 * The HTTP form of errors: the status, type and code of each error, and the envelope of each dialect.
 *
 * Every envelope also contains `error.{message,type,param,code}`, so that one parser can read all dialects; in
 * Gemini's, `code` is the HTTP status.
 */
import { HttpServerResponse } from "effect/http"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import { newResponseId } from "../../../shared/contract/ResponseId.ts"
import type { RequestError } from "./IngressError.ts"

interface Description {
  readonly status: number
  readonly code: string | null
  /** Default: the type of the status. */
  readonly type?: string
  readonly param?: string | null
  readonly headers?: Readonly<Record<string, string>>
}

/** The type of each status, and Google's name for the status. */
const statuses: Readonly<Record<number, { readonly type: string; readonly gemini: string }>> = {
  401: { type: "authentication_error", gemini: "UNAUTHENTICATED" },
  403: { type: "permission_error", gemini: "PERMISSION_DENIED" },
  404: { type: "not_found_error", gemini: "NOT_FOUND" },
  429: { type: "rate_limit_error", gemini: "RESOURCE_EXHAUSTED" },
  500: { type: "api_error", gemini: "INTERNAL" },
  502: { type: "upstream_error", gemini: "INTERNAL" },
  503: { type: "overloaded_error", gemini: "UNAVAILABLE" },
  504: { type: "timeout_error", gemini: "DEADLINE_EXCEEDED" }
}

const otherStatus = { type: "invalid_request_error", gemini: "INVALID_ARGUMENT" }

const ofStatus = (status: number) => statuses[status] ?? otherStatus

const unreadable = {
  syntax: { status: 400, code: "malformed_request" },
  expectation: { status: 417, code: "expectation_failed" },
  headers: { status: 431, code: "headers_too_large" },
  extensions: { status: 413, code: "request_too_large" },
  timeout: { status: 408, code: "request_timeout" }
} as const

const fileRefused = {
  size: { status: 413, code: "file_too_large", param: "file" },
  quota: { status: 413, code: "file_quota_exceeded", param: "file" },
  content: { status: 400, code: "invalid_file", param: "file" }
} as const

/** Errors whose description is always the same. */
const constant = {
  KeyMissing: { status: 401, code: "missing_api_key" },
  KeyInvalid: { status: 401, code: "invalid_api_key" },
  ModelNotAllowed: { status: 403, code: "model_not_allowed", param: "model" },
  LimitReached: { status: 429, code: "rate_limit_exceeded" },
  BudgetSpent: { status: 429, code: "insufficient_quota" },
  BodyTooLarge: { status: 413, code: "request_too_large" },
  MediaTypeUnsupported: { status: 415, code: "unsupported_media_type" },
  RouteNotFound: { status: 404, code: "route_not_found" },
  FileNotFound: { status: 404, code: "file_not_found" },
  TaskNotFound: { status: 404, code: "task_not_found" },
  TaskNotCompleted: { status: 400, code: "task_not_completed" },
  // official clients retry a 409 by default
  AnswerNotKept: {
    status: 409,
    code: "answer_not_kept",
    param: "idempotency-key",
    headers: { "x-should-retry": "false" }
  },
  IdempotencyKeyReused: { status: 422, code: "idempotency_key_reused", param: "idempotency-key" },
  ModelNotFound: { status: 404, code: "model_not_found", param: "model" },
  ProviderRateLimited: { status: 429, code: "rate_limit_exceeded" },
  ProviderTimeout: { status: 504, code: "upstream_timeout" },
  QueueFull: { status: 429, code: "queue_full" },
  QueueTimeout: { status: 503, code: "queue_timeout" },
  WorkerLost: { status: 502, code: "worker_lost" },
  // official clients retry a 502 by default
  PoisonJob: { status: 502, code: "poison_request", headers: { "x-should-retry": "false" } },
  AnswerLost: { status: 502, code: "answer_lost" },
  Unavailable: { status: 503, code: "unavailable" },
  Cancelled: { status: 500, code: "internal_error" },
  UpgradeRequired: { status: 426, code: "upgrade_required", headers: { upgrade: "websocket" } },
  SocketExpired: { status: 400, code: "websocket_connection_limit_reached" },
  TooManyLanes: { status: 400, code: "too_many_streams", param: "stream_id" },
  InternalError: { status: 500, code: "internal_error" }
} satisfies Record<string, Description>

const variable = (error: RequestError): Description => {
  switch (error._tag) {
    case "KeyInactive":
      return { status: 403, code: `${error.reason}_api_key` }
    case "TokensOverLimit":
      return { status: 400, code: "token_limit_exceeded", param: error.fields[0] }
    case "InvalidRequest":
      return { status: 400, code: error.code, param: error.param }
    case "LinkRefused":
      return { status: 403, code: error.reason === "expired" ? "link_expired" : "invalid_signature" }
    case "FileRefused":
      return fileRefused[error.reason]
    case "RangeNotSatisfiable": {
      const headers = { "content-range": `bytes */${error.size}` }
      return { status: 416, code: "range_not_satisfiable", param: "range", headers }
    }
    case "RequestUnreadable":
      return unreadable[error.reason]
    case "ProviderFailed":
      // no retry helps until the operator pays
      return error.reason === "credit"
        ? { status: 502, code: "insufficient_quota", headers: { "x-should-retry": "false" } }
        : { status: 502, code: "upstream_error" }
    case "ReferenceNotFound":
      return { status: 404, code: "not_found", param: error.param }
    case "ProviderRejected": {
      const { code, param, status } = error
      // the types of the other statuses describe errors of the gateway itself
      const { type } = status === 404 || status === 429 ? ofStatus(status) : otherStatus
      return { status, type: error.type ?? type, code, param }
    }
    default:
      return constant[error._tag]
  }
}

const describe = (error: RequestError) => {
  const description = variable(error)
  return { ...ofStatus(description.status), param: null, ...description }
}

const envelope = (dialect: Dialect, error: RequestError, requestId: string): object => {
  const { code, gemini, param, status, type } = describe(error)
  const { message } = error
  switch (dialect) {
    case "openai":
    case "responses":
      return { error: { message, type, param, code } }
    case "cohere":
      return { message, error: { message, type, param, code } }
    case "anthropic":
      return { type: "error", error: { type, message, param, code }, request_id: requestId }
    case "gemini":
      // Google's client expects a number here
      return { error: { code: status, message, status: gemini, type, param } }
  }
}

/** For provider rate limits without a retry time. */
const defaultRetryMs = 1_000

/** OpenAI's clients wait at most a minute before a retry. For longer waits, `x-should-retry` stops them. */
const longestRetryMs = 60_000

const retryHeaders = (error: RequestError): Record<string, string> => {
  if (!("retryAfterMs" in error)) return {}
  const retryAfterMs = error.retryAfterMs ?? (error._tag === "ProviderRateLimited" ? defaultRetryMs : undefined)
  if (retryAfterMs === undefined) return {}
  const milliseconds = Math.ceil(retryAfterMs)
  return {
    "retry-after": String(Math.ceil(milliseconds / 1_000)),
    "retry-after-ms": String(milliseconds),
    ...(milliseconds > longestRetryMs ? { "x-should-retry": "false" } : {})
  }
}

/** An error as an HTTP response. */
export const toText = (dialect: Dialect, error: RequestError, requestId: string) => {
  const { headers, status } = describe(error)
  return {
    status,
    headers: { "content-type": "application/json", ...headers, ...retryHeaders(error) },
    body: JSON.stringify(envelope(dialect, error, requestId))
  }
}

/** The same for a route of Effect's router. */
export const toResponse = (
  dialect: Dialect,
  error: RequestError,
  requestId: string
): HttpServerResponse.HttpServerResponse => {
  const { body, headers, status } = toText(dialect, error, requestId)
  return HttpServerResponse.text(body, { status, headers, contentType: "application/json" })
}

/** The fields common to all envelopes, for an error inside a result. */
export const toFields = (error: RequestError) => {
  const { code, param, type } = describe(error)
  return { message: error.message, type, param, code }
}

/** The stream that an error ends. */
export interface Broken {
  readonly requestId: string
  readonly model: string
  /** The id of the response, and the number of the event; only if ingress has read the events before. */
  readonly id?: string
  readonly sequenceNumber?: number
}

/** An error in the middle of a stream of server-sent events. JSON contains no line breaks, so it cannot split an event. */
export const toFrame = (dialect: Dialect, error: RequestError, broken: Broken): string => {
  const { requestId } = broken
  if (dialect === "responses") return toFailedResponse(error, broken)
  const data = JSON.stringify(envelope(dialect, error, requestId))
  return dialect === "anthropic" ? `event: error\ndata: ${data}\n\n` : `data: ${data}\n\n`
}

/** Codes by which clients of the responses format know that no retry helps, and the one that has them wait for a while. */
const knownInStreams: ReadonlySet<string | null> = new Set([
  "context_length_exceeded",
  "insufficient_quota",
  "rate_limit_exceeded"
])

/** The code of an error in a stream of the responses format, whose clients send the request again unless they know the code. */
const codeInStream = (error: RequestError): string => {
  const { code, status } = describe(error)
  if (code !== null && knownInStreams.has(code)) return code
  if (status === 429) return "rate_limit_exceeded"
  const isFinal = error._tag === "PoisonJob" || (status >= 400 && status < 500 && status !== 408)
  return isFinal ? "invalid_prompt" : "server_error"
}

/** Higher than those of all events before it. */
const lastSequenceNumber = 2 ** 31 - 1

/** The official client throws the `error` of any event; other clients read the failed response. */
const toFailedResponse = (
  error: RequestError,
  { id = newResponseId(), model, sequenceNumber = lastSequenceNumber }: Broken
): string => {
  const fields = toFields(error)
  const code = codeInStream(error)
  const cause = { code, message: fields.message }
  const status = error._tag === "TaskNotCompleted" ? error.status : "failed"
  const response = { id, object: "response", status, model, error: cause, output: [] }
  const data = { type: "response.failed", sequence_number: sequenceNumber, error: { ...fields, code }, response }
  return `event: response.failed\ndata: ${JSON.stringify(data)}\n\n`
}
