/** The HTTP form of errors: status and code of ingress's own errors, and the responses and streams that carry errors. */
import { HttpServerResponse } from "effect/http"
import { contentCodings } from "../../../shared/bounds/ContentCoding.ts"
import type { Description } from "../../../shared/contract/http/ErrorForm.ts"
import * as ErrorForm from "../../../shared/contract/http/ErrorForm.ts"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import { newResponseId } from "../../../shared/contract/ResponseId.ts"
import type { RequestError } from "./IngressError.ts"

const unreadable = {
  syntax: { status: 400, code: "malformed_request" },
  expectation: { status: 417, code: "expectation_failed" },
  headers: { status: 431, code: "headers_too_large" },
  extensions: { status: 413, code: "request_too_large" },
  timeout: { status: 408, code: "request_timeout" },
  slow: { status: 408, code: "request_timeout" }
} as const

const fileRefused = {
  size: { status: 413, code: "file_too_large", param: "file" },
  quota: { status: 413, code: "file_quota_exceeded", param: "file" },
  content: { status: 400, code: "invalid_file", param: "file" }
} as const

/** Errors whose description is always the same. */
const constant = {
  TokenInvalid: { status: 401, code: "invalid_api_key" },
  KeyMissing: { status: 401, code: "missing_api_key" },
  LimitReached: { status: 429, code: "rate_limit_exceeded" },
  BodyTooLarge: { status: 413, code: "request_too_large" },
  MediaTypeUnsupported: { status: 415, code: "unsupported_media_type" },
  ContentCodingUnsupported: {
    status: 415,
    code: "unsupported_content_encoding",
    param: "content-encoding",
    headers: { "accept-encoding": contentCodings.join(", ") }
  },
  OriginNotAllowed: { status: 403, code: "origin_not_allowed", param: "origin" },
  RouteNotFound: { status: 404, code: "route_not_found" },
  FileNotFound: { status: 404, code: "file_not_found" },
  TaskNotFound: { status: 404, code: "task_not_found" },
  TaskNotCompleted: { status: 400, code: "task_not_completed" },
  TaskStorageFull: { status: 413, code: "task_quota_exceeded" },
  // official clients retry a 409 by default
  AnswerNotKept: {
    status: 409,
    code: "answer_not_kept",
    param: "idempotency-key",
    headers: { "x-should-retry": "false" }
  },
  IdempotencyKeyReused: { status: 422, code: "idempotency_key_reused", param: "idempotency-key" },
  UpgradeRequired: { status: 426, code: "upgrade_required", headers: { upgrade: "websocket" } },
  SocketExpired: { status: 400, code: "websocket_connection_limit_reached" },
  TooManyLanes: { status: 400, code: "too_many_streams", param: "stream_id" }
} satisfies Record<string, Description>

type Constant = Extract<RequestError, { readonly _tag: keyof typeof constant }>

const isConstant = (error: RequestError): error is Constant => error._tag in constant

const descriptionOf = (error: RequestError): Description => {
  switch (error._tag) {
    case "TokensOverLimit":
      return { status: 400, code: "token_limit_exceeded", param: error.fields[0] }
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
    default:
      return isConstant(error) ? constant[error._tag] : ErrorForm.descriptionOf(error)
  }
}

const describe = (error: RequestError, dialect?: Dialect) => {
  const description = descriptionOf(error)
  // Codex ignores `x-should-retry` and retries any 5xx, each time with two more workers
  const isFinal = dialect === "responses" && error._tag === "PoisonJob"
  return ErrorForm.complete(isFinal ? { ...description, status: 400 } : description)
}

const envelope = (dialect: Dialect, error: RequestError, requestId: string): object =>
  ErrorForm.envelope(dialect, describe(error, dialect), error.message, requestId)

/** The retry time of provider rate limits that state none. */
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
  const { headers, status } = describe(error, dialect)
  return {
    status,
    headers: { "content-type": "application/json", ...headers, ...retryHeaders(error) },
    body: JSON.stringify(envelope(dialect, error, requestId))
  }
}

/** An error as a response of Effect's router. */
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
  /** The id of the response and the number of the event, if ingress has read the earlier events. */
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

/** Codes that clients of the responses format know: they do not retry, or with one of the codes only after a while. */
const knownInStreams: ReadonlySet<string | null> = new Set([
  "context_length_exceeded",
  "insufficient_quota",
  "rate_limit_exceeded"
])

/** The code of an error in a stream of the responses format. Clients retry the request unless they know the code. */
const codeInStream = (error: RequestError): string => {
  const { code, status } = describe(error)
  if (code !== null && knownInStreams.has(code)) return code
  if (status === 429) return "rate_limit_exceeded"
  const isFinal = error._tag === "PoisonJob" || (status >= 400 && status < 500 && status !== 408)
  return isFinal ? "invalid_prompt" : "server_error"
}

/** Higher than the sequence number of any earlier event. */
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
