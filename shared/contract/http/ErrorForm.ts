/**
 * Gives errors their HTTP form: the status, type and code of the errors of jobs, and the envelope of each dialect.
 *
 * Every envelope also contains `error.{message,type,param,code}`, so that one parser can read all dialects; in
 * Gemini's, `code` is the HTTP status.
 */
import type { JobError, ProviderFailed } from "../JobError.ts"
import type { Dialect } from "../Operation.ts"
import * as PromptTooLong from "./PromptTooLong.ts"

export interface Description {
  readonly status: number
  readonly code: string | null
  /** Default: the type of the status. */
  readonly type?: string
  readonly param?: string | null
  readonly headers?: Readonly<Record<string, string>>
  /** See `InvalidRequest`. */
  readonly details?: object | undefined
}

/** The error type of each status, and Google's name for the status. */
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

/** Errors whose description is always the same. */
const constant = {
  KeyInvalid: { status: 401, code: "invalid_api_key" },
  ModelNotAllowed: { status: 403, code: "model_not_allowed", param: "model" },
  BudgetSpent: { status: 429, code: "insufficient_quota" },
  ModelNotFound: { status: 404, code: "model_not_found", param: "model" },
  // OpenAI also answers a model of another kind with 404
  ModelUnsuitable: { status: 404, code: "model_not_supported", param: "model" },
  // a retry cannot help until the operator enables the model
  ModelDisabled: { status: 503, code: "model_disabled", param: "model", headers: { "x-should-retry": "false" } },
  ProviderRateLimited: { status: 429, code: "rate_limit_exceeded" },
  ProviderTimeout: { status: 504, code: "upstream_timeout" },
  QueueFull: { status: 429, code: "queue_full" },
  QueueTimeout: { status: 503, code: "queue_timeout" },
  WorkerLost: { status: 502, code: "worker_lost" },
  // official clients retry a 502 by default
  PoisonJob: { status: 502, code: "poison_request", headers: { "x-should-retry": "false" } },
  AnswerLost: { status: 502, code: "answer_lost" },
  Unavailable: { status: 503, code: "unavailable" },
  LimitsUnavailable: { status: 503, code: "limits_unavailable" },
  GuardrailRefused: { status: 400, code: "content_filter" },
  GuardrailUnavailable: { status: 503, code: "guardrail_unavailable" },
  Cancelled: { status: 500, code: "internal_error" },
  InternalError: { status: 500, code: "internal_error" }
} satisfies Partial<Record<JobError["_tag"], Description>>

/** The kinds of failures that a provider names within an answer, by the status that they stand for: clients wait longer when it is overloaded. */
const kinds: ReadonlyMap<number | null, string> = new Map([
  [503, "overloaded_error"],
  [504, "timeout_error"],
  [529, "overloaded_error"]
])

const kindOf = ({ reason, status }: ProviderFailed): Pick<Description, "type"> => {
  const type = reason === "error" ? kinds.get(status) : undefined
  return type === undefined ? {} : { type }
}

export const descriptionOf = (error: JobError): Description => {
  switch (error._tag) {
    case "KeyInactive":
      return { status: 403, code: `${error.reason}_api_key` }
    case "InvalidRequest":
      return { status: 400, code: error.code, param: error.param, details: error.details }
    case "ProviderFailed":
      // not a 502: no retry helps until the operator pays, but Codex would retry a 502 thirty times
      return error.reason === "credit"
        ? { status: 429, code: "insufficient_quota", headers: { "x-should-retry": "false" } }
        : { status: 502, code: "upstream_error", ...kindOf(error) }
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

export type Described = ReturnType<typeof complete>

/** Completes a description with the defaults of its status. */
export const complete = (description: Description) => ({
  ...ofStatus(description.status),
  param: null,
  details: undefined,
  ...description
})

export const envelope = (
  dialect: Dialect,
  { code, details, gemini, param, status, type }: Described,
  message: string,
  requestId: string
): object => {
  switch (dialect) {
    case "openai":
    case "responses":
      return { error: { message, type, param, code } }
    case "cohere":
      return { message, error: { message, type, param, code } }
    case "anthropic":
      return {
        type: "error",
        error: {
          type,
          message: code === "context_length_exceeded" ? PromptTooLong.inAnthropicsWords(message) : message,
          param,
          code,
          details
        },
        request_id: requestId
      }
    case "gemini":
      // Google's client expects a number here
      return { error: { code: status, message, status: gemini, type, param } }
  }
}
