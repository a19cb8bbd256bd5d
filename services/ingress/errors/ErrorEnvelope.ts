/**
 * The HTTP form of errors: the status, type and code of each error, and the envelope of each dialect.
 *
 * Every envelope also contains `error.{message,type,param,code}`, so a client of any dialect finds its fields.
 */
import { HttpServerResponse } from "effect/http"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import type { RequestError } from "./IngressError.ts"

interface Description {
  readonly status: number
  readonly type: string
  readonly code: string | null
  readonly param?: string | null
  readonly retryAfterMs?: number | undefined
  readonly headers?: Readonly<Record<string, string>>
}

/** For provider rate limits without a retry time. */
const defaultRetryMs = 1_000

const unreadable = {
  syntax: { status: 400, code: "malformed_request" },
  expectation: { status: 417, code: "expectation_failed" },
  headers: { status: 431, code: "headers_too_large" },
  extensions: { status: 413, code: "request_too_large" },
  timeout: { status: 408, code: "request_timeout" }
} as const

/** Errors whose description is always the same. */
const constant = {
  KeyMissing: { status: 401, type: "authentication_error", code: "missing_api_key" },
  KeyInvalid: { status: 401, type: "authentication_error", code: "invalid_api_key" },
  ModelNotAllowed: { status: 403, type: "permission_error", code: "model_not_allowed", param: "model" },
  BodyTooLarge: { status: 413, type: "invalid_request_error", code: "request_too_large" },
  MediaTypeUnsupported: { status: 415, type: "invalid_request_error", code: "unsupported_media_type" },
  RouteNotFound: { status: 404, type: "not_found_error", code: "route_not_found" },
  FileNotFound: { status: 404, type: "not_found_error", code: "file_not_found" },
  TaskNotFound: { status: 404, type: "not_found_error", code: "task_not_found" },
  TaskNotCompleted: { status: 400, type: "invalid_request_error", code: "task_not_completed" },
  IdempotencyKeyReused: {
    status: 422,
    type: "invalid_request_error",
    code: "idempotency_key_reused",
    param: "idempotency-key"
  },
  ModelNotFound: { status: 404, type: "not_found_error", code: "model_not_found", param: "model" },
  ProviderTimeout: { status: 504, type: "timeout_error", code: "upstream_timeout" },
  WorkerLost: { status: 502, type: "upstream_error", code: "worker_lost" },
  // official clients retry a 502 by default
  PoisonJob: { status: 502, type: "upstream_error", code: "poison_request", headers: { "x-should-retry": "false" } },
  AnswerLost: { status: 502, type: "upstream_error", code: "answer_lost" },
  Cancelled: { status: 500, type: "api_error", code: "internal_error" },
  InternalError: { status: 500, type: "api_error", code: "internal_error" }
} satisfies Record<string, Description>

const rateLimited = (code: string, retryAfterMs: number): Description => ({
  status: 429,
  type: "rate_limit_error",
  code,
  retryAfterMs
})

const describe = (error: RequestError): Description => {
  switch (error._tag) {
    case "KeyInactive":
      return { status: 403, type: "permission_error", code: `${error.reason}_api_key` }
    case "LimitReached":
      return rateLimited("rate_limit_exceeded", error.retryAfterMs)
    case "TokensOverLimit":
      return { status: 400, type: "invalid_request_error", code: "token_limit_exceeded", param: error.fields[0] }
    case "BudgetSpent":
      return rateLimited("insufficient_quota", error.retryAfterMs)
    case "InvalidRequest":
      return { status: 400, type: "invalid_request_error", code: error.code, param: error.param }
    case "LinkRefused": {
      const code = error.reason === "expired" ? "link_expired" : "invalid_signature"
      return { status: 403, type: "permission_error", code }
    }
    case "RangeNotSatisfiable": {
      const headers = { "content-range": `bytes */${error.size}` }
      return { status: 416, type: "invalid_request_error", code: "range_not_satisfiable", param: "range", headers }
    }
    case "RequestUnreadable":
      return { type: "invalid_request_error", ...unreadable[error.reason] }
    case "ReferenceNotFound":
      return { status: 404, type: "not_found_error", code: "not_found", param: error.param }
    case "ProviderRejected": {
      const { code, param, status } = error
      return { status, type: error.type ?? typeOf(status), code, param }
    }
    case "ProviderRateLimited":
      return rateLimited("rate_limit_exceeded", error.retryAfterMs ?? defaultRetryMs)
    case "ProviderFailed": {
      const retryAfterMs = error.retryAfterMs ?? undefined
      return { status: 502, type: "upstream_error", code: "upstream_error", retryAfterMs }
    }
    case "QueueFull":
      return rateLimited("queue_full", error.retryAfterMs)
    case "QueueTimeout":
      return { status: 503, type: "overloaded_error", code: "queue_timeout", retryAfterMs: error.retryAfterMs }
    case "Unavailable":
      return { status: 503, type: "overloaded_error", code: "unavailable", retryAfterMs: error.retryAfterMs }
    default:
      return constant[error._tag]
  }
}

const typeOf = (status: number): string =>
  status === 404 ? "not_found_error" : status === 429 ? "rate_limit_error" : "invalid_request_error"

/** Google's names for statuses. */
const geminiStatuses: Readonly<Record<number, string>> = {
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED"
}

const geminiStatus = (status: number): string =>
  geminiStatuses[status] ?? (status < 500 ? "INVALID_ARGUMENT" : "INTERNAL")

const envelope = (dialect: Dialect, error: RequestError, description: Description, requestId: string): object => {
  const { code, param = null, status, type } = description
  const { message } = error
  switch (dialect) {
    case "openai":
      return { error: { message, type, param, code } }
    case "cohere":
      return { message, error: { message, type, param, code } }
    case "anthropic":
      return { type: "error", error: { type, message, param, code }, request_id: requestId }
    case "gemini":
      // Google's client expects a number here
      return { error: { code: status, message, status: geminiStatus(status), type, param } }
  }
}

/** OpenAI's clients wait at most a minute before a retry. For longer waits, `x-should-retry` stops them. */
const longestRetryMs = 60_000

const retryHeaders = (retryAfterMs: number | undefined): Record<string, string> => {
  if (retryAfterMs === undefined) return {}
  const milliseconds = Math.ceil(retryAfterMs)
  return {
    "retry-after": String(Math.ceil(milliseconds / 1_000)),
    "retry-after-ms": String(milliseconds),
    ...(milliseconds > longestRetryMs ? { "x-should-retry": "false" } : {})
  }
}

/** An error as an HTTP response. */
export const toResponse = (
  dialect: Dialect,
  error: RequestError,
  requestId: string
): HttpServerResponse.HttpServerResponse => {
  const description = describe(error)
  return HttpServerResponse.jsonUnsafe(envelope(dialect, error, description, requestId), {
    status: description.status,
    headers: { ...description.headers, ...retryHeaders(description.retryAfterMs) }
  })
}

/** The fields common to all envelopes, for an error inside a result. */
export const toFields = (error: RequestError) => {
  const { code, param = null, type } = describe(error)
  return { message: error.message, type, param, code }
}

/** The status and body of an error, for responses without a handler. */
export const toText = (dialect: Dialect, error: RequestError, requestId: string) => {
  const description = describe(error)
  return { status: description.status, body: JSON.stringify(envelope(dialect, error, description, requestId)) }
}

/** An error in the middle of a stream of server-sent events. JSON contains no line breaks, so it cannot split an event. */
export const toFrame = (dialect: Dialect, error: RequestError, requestId: string): string => {
  const data = JSON.stringify(envelope(dialect, error, describe(error), requestId))
  return dialect === "anthropic" ? `event: error\ndata: ${data}\n\n` : `data: ${data}\n\n`
}
