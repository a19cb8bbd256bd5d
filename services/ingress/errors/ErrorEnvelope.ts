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

const describe = (error: RequestError): Description => {
  switch (error._tag) {
    case "KeyMissing":
      return { status: 401, type: "authentication_error", code: "missing_api_key" }
    case "KeyInvalid":
      return { status: 401, type: "authentication_error", code: "invalid_api_key" }
    case "KeyInactive":
      return { status: 403, type: "permission_error", code: `${error.reason}_api_key` }
    case "ModelNotAllowed":
      return { status: 403, type: "permission_error", code: "model_not_allowed", param: "model" }
    case "LimitReached":
      return { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded", retryAfterMs: error.retryAfterMs }
    case "TokensOverLimit":
      return { status: 400, type: "invalid_request_error", code: "token_limit_exceeded", param: error.fields[0] }
    case "BudgetSpent":
      return { status: 429, type: "rate_limit_error", code: "insufficient_quota", retryAfterMs: error.retryAfterMs }
    case "InvalidRequest":
      return { status: 400, type: "invalid_request_error", code: error.code, param: error.param }
    case "BodyTooLarge":
      return { status: 413, type: "invalid_request_error", code: "request_too_large" }
    case "MediaTypeUnsupported":
      return { status: 415, type: "invalid_request_error", code: "unsupported_media_type" }
    case "RouteNotFound":
      return { status: 404, type: "not_found_error", code: "route_not_found" }
    case "LinkRefused": {
      const code = error.reason === "expired" ? "link_expired" : "invalid_signature"
      return { status: 403, type: "permission_error", code }
    }
    case "FileNotFound":
      return { status: 404, type: "not_found_error", code: "file_not_found" }
    case "TaskNotFound":
      return { status: 404, type: "not_found_error", code: "task_not_found" }
    case "TaskNotCompleted":
      return { status: 400, type: "invalid_request_error", code: "task_not_completed" }
    case "IdempotencyKeyReused":
      return { status: 422, type: "invalid_request_error", code: "idempotency_key_reused", param: "idempotency-key" }
    case "RangeNotSatisfiable": {
      const headers = { "content-range": `bytes */${error.size}` }
      return { status: 416, type: "invalid_request_error", code: "range_not_satisfiable", param: "range", headers }
    }
    case "RequestUnreadable":
      return { type: "invalid_request_error", ...unreadable[error.reason] }
    case "ModelNotFound":
      return { status: 404, type: "not_found_error", code: "model_not_found", param: "model" }
    case "ReferenceNotFound":
      return { status: 404, type: "not_found_error", code: "not_found", param: error.param }
    case "ProviderRejected":
      return {
        status: error.status,
        type: error.type ?? typeOf(error.status),
        code: error.code,
        param: error.param
      }
    case "ProviderRateLimited": {
      const retryAfterMs = error.retryAfterMs ?? defaultRetryMs
      return { status: 429, type: "rate_limit_error", code: "rate_limit_exceeded", retryAfterMs }
    }
    case "ProviderFailed": {
      const retryAfterMs = error.retryAfterMs ?? undefined
      return { status: 502, type: "upstream_error", code: "upstream_error", retryAfterMs }
    }
    case "ProviderTimeout":
      return { status: 504, type: "timeout_error", code: "upstream_timeout" }
    case "QueueFull":
      return { status: 429, type: "rate_limit_error", code: "queue_full", retryAfterMs: error.retryAfterMs }
    case "QueueTimeout":
      return { status: 503, type: "overloaded_error", code: "queue_timeout", retryAfterMs: error.retryAfterMs }
    case "Unavailable":
      return { status: 503, type: "overloaded_error", code: "unavailable", retryAfterMs: error.retryAfterMs }
    case "WorkerLost":
      return { status: 502, type: "upstream_error", code: "worker_lost" }
    case "PoisonJob":
      // official clients retry a 502 by default
      return { status: 502, type: "upstream_error", code: "poison_request", headers: { "x-should-retry": "false" } }
    case "AnswerLost":
      return { status: 502, type: "upstream_error", code: "answer_lost" }
    case "Cancelled":
    case "InternalError":
      return { status: 500, type: "api_error", code: "internal_error" }
  }
}

const typeOf = (status: number): string => {
  switch (status) {
    case 404:
      return "not_found_error"
    case 429:
      return "rate_limit_error"
    default:
      return "invalid_request_error"
  }
}

/** Google's names for statuses. */
const geminiStatus = (status: number): string => {
  switch (status) {
    case 401:
      return "UNAUTHENTICATED"
    case 403:
      return "PERMISSION_DENIED"
    case 404:
      return "NOT_FOUND"
    case 429:
      return "RESOURCE_EXHAUSTED"
    case 503:
      return "UNAVAILABLE"
    case 504:
      return "DEADLINE_EXCEEDED"
    default:
      return status < 500 ? "INVALID_ARGUMENT" : "INTERNAL"
  }
}

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
