/** Turns a provider's error, in any dialect, into one that the client may see. */
import { Clock, DateTime, Effect, Option, Predicate } from "effect"
import {
  type JobError,
  ProviderFailed,
  ProviderRateLimited,
  ProviderRejected,
  type Quota
} from "../../contract/JobError.ts"
import * as SchemaErrors from "../../contract/SchemaErrors.ts"
import * as Json from "../json/Json.ts"
import { quotaIn } from "../transport/QuotaHeaders.ts"
import { headerOf, type ResponseHeaders } from "../transport/ResponseHeaders.ts"

/** How much of an error's body is read, in bytes. */
export const maxErrorBytes = 64 * 1024

const isKey = (part: unknown): part is string | number => typeof part === "string" || typeof part === "number"

/** The first error in FastAPI's list of a request's errors. Most self-hosted servers are built on FastAPI. */
const firstMistakeIn = (detail: unknown): Json.Fields => {
  const { loc, msg } = Json.fields(Json.list(detail)[0])
  const [root, ...path] = Json.list(loc).filter(isKey)
  if (typeof msg !== "string") return {}
  const mistake = { message: msg, path: root === "body" ? path : [] }
  return {
    message: SchemaErrors.formatError(mistake, "The request:"),
    param: SchemaErrors.formatPath(mistake.path) || null
  }
}

/** A provider's description of its error: under `error` in OpenAI's and similar dialects, at the top in Cohere's and DashScope's. */
const saidIn = (body: unknown): Json.Fields => {
  // a stream of JSON from Google is a list
  const top = Json.fields(Array.isArray(body) ? body[0] : body)
  const { delta, detail, response } = top
  const error = top["error"] ?? Json.fields(response)["error"] ?? Json.fields(delta)["error"]
  if (Predicate.isReadonlyObject(error)) return error
  const mistake = firstMistakeIn(detail)
  return { ...top, ...mistake, message: top["message"] ?? error ?? mistake["message"] ?? detail }
}

/** Whether an error's body has a readable message. */
export const hasMessage = (body: string): boolean => textOf(saidIn(Json.parse(body))["message"]) !== undefined

/** Google's `google.rpc` details, by the last part of their type. */
const detailOf = (said: Json.Fields, type: string): Json.Fields =>
  Json.list(said["details"]).map(Json.fields).find((detail) => Json.string(detail["@type"])?.endsWith(`.${type}`)) ?? {}

/** The longest accepted `retry-after`, in milliseconds: a day. Longer times are mistakes. */
const longestRetryMs = 24 * 60 * 60 * 1_000

/** A provider's number in milliseconds; `null` if it is not a number. */
const delayOf = (text: string | undefined, unitMs: number): number | null =>
  /^\d+(?:\.\d+)?$/.test(text?.trim() ?? "") ? Math.min(Number(text) * unitMs, longestRetryMs) : null

/** The time to wait in milliseconds: from `retry-after-ms`, or `retry-after` in seconds or as a date; `null` if neither is valid. */
export const retryAfter = Effect.fnUntraced(function*(headers: ResponseHeaders) {
  const value = headerOf(headers, "retry-after") ?? ""
  const delay = delayOf(headerOf(headers, "retry-after-ms"), 1) ?? delayOf(value, 1_000)
  if (delay !== null) return delay
  // requires letters, as in the name of a month, because other numbers would parse as dates
  const date = /[a-z]{3}/i.test(value) ? DateTime.make(value) : Option.none()
  return Option.isNone(date)
    ? null
    : Math.min(Math.max(0, DateTime.toEpochMillis(date.value) - (yield* Clock.currentTimeMillis)), longestRetryMs)
})

/** Google's `retryDelay`, such as `34.4s`, in milliseconds. */
const retryDelay = (said: Json.Fields): number | null =>
  delayOf(/^(.+)s$/.exec(Json.string(detailOf(said, "RetryInfo")["retryDelay"]) ?? "")?.[1], 1_000)

/** Whether the provider refused the gateway's credentials. Google answers 400 to a wrong key. */
const areCredentialsRefused = (status: number, said: Json.Fields): boolean =>
  status === 401 || status === 403 || detailOf(said, "ErrorInfo")["reason"] === "API_KEY_INVALID"

/**
 * How providers report an account without credit: OpenAI with a 429, which waiting does not end, or a 400; Anthropic with
 * a 400 without a distinct code, or a 402; DashScope with a 400; Cohere, DeepSeek and others with a 402.
 */
const noCredit: ReadonlySet<unknown> = new Set([
  "insufficient_quota",
  "billing_hard_limit_reached",
  "billing_error",
  "Arrearage"
])

const isWithoutCredit = (status: number, { code, message, type }: Json.Fields): boolean =>
  status === 402 || noCredit.has(code) || noCredit.has(type) ||
  textOf(message)?.startsWith("Your credit balance is too low") === true

/**
 * The error for an answer with an error status. A 4xx about the request keeps its status and message. Refused credentials and
 * an account without credit are not the client's fault, and the provider's message may quote a key: they become a 502
 * without that message.
 */
export const fromAnswer = Effect.fnUntraced(function*(
  provider: string,
  status: number,
  headers: ResponseHeaders,
  body: string,
  secrets: ReadonlyArray<string>
): Effect.fn.Return<JobError> {
  const said = saidIn(Json.parse(body))
  const named = (yield* retryAfter(headers)) ?? retryDelay(said)
  const told = { secrets, retryAfterMs: named, quota: undefined }
  if (status !== 429) return describe(provider, status, said, told) ?? statusFailure(provider, status, named)
  const { quota = quotaOf(said), resetMs = null } = quotaIn(headers, yield* Clock.currentTimeMillis)
  return describe(provider, status, said, { ...told, retryAfterMs: named ?? resetMs, quota }) ??
    statusFailure(provider, status, named)
})

const statusFailure = (provider: string, status: number, retryAfterMs: number | null): ProviderFailed =>
  new ProviderFailed({ provider, reason: "status", status, retryAfterMs })

/** What Google says in the body: a quota of requests is used up. One of tokens may still have room for a smaller request. */
const quotaOf = (said: Json.Fields): Quota | undefined => {
  const violations = Json.list(detailOf(said, "QuotaFailure")["violations"]).map(Json.fields)
  const isOfRequests = violations.some(({ quotaMetric }) => Json.string(quotaMetric)?.endsWith("requests") === true)
  return isOfRequests ? { requestsLeft: 0 } : undefined
}

/** What an error's answer says besides its description, and the secrets that it must not show. */
interface Told {
  readonly retryAfterMs: number | null
  readonly quota: Quota | undefined
  readonly secrets: ReadonlyArray<string>
}

/** The error that a provider reports instead of an answer, or in the middle of one. */
export const inAnswer = (provider: string, body: unknown, secrets: ReadonlyArray<string>): JobError => {
  const said = saidIn(body)
  const status = statusOf(said)
  const retryAfterMs = retryDelay(said)
  const told = { retryAfterMs, secrets, quota: quotaOf(said) }
  return (status === undefined ? undefined : describe(provider, status, said, told)) ??
    new ProviderFailed({ provider, reason: "error", status: status ?? null, retryAfterMs })
}

/** The error that a status stands for; `undefined` for a failure of the provider. */
const describe = (
  provider: string,
  status: number,
  said: Json.Fields,
  { quota, retryAfterMs, secrets }: Told
): JobError | undefined => {
  const refused = (reason: "credentials" | "credit") => new ProviderFailed({ provider, reason, status })
  if (isWithoutCredit(status, said)) return refused("credit")
  if (status === 429) {
    return new ProviderRateLimited({ provider, retryAfterMs, ...(quota === undefined ? {} : { quota }) })
  }
  if (areCredentialsRefused(status, said)) return refused("credentials")
  if (status < 400 || status >= 500 || status === 408) return undefined
  const shown = (value: unknown): string | undefined => {
    const text = textOf(value)
    return text === undefined ? undefined : redact(text, secrets)
  }
  // Google's `code` repeats the HTTP status; its `status` is the error's name
  const code = shown(said["status"]) ?? shown(said["code"]) ?? null
  const message = shown(said["message"]) ?? `The provider '${provider}' rejected the request`
  const type = shown(said["type"]) ?? null
  return new ProviderRejected({
    provider,
    status,
    message,
    type,
    param: shown(textOf(said["param"]) ?? paramOf(said, message)) ?? null,
    code: exceedsContext({ code, message, type }) ? contextCode : code
  })
}

/** The path of the rejected field. Google names it in the details; Anthropic begins its message with it. */
const paramOf = (said: Json.Fields, message: string): string | undefined =>
  Json.string(Json.fields(Json.list(detailOf(said, "BadRequest")["fieldViolations"])[0])["field"]) ??
    /^([a-z]\w*(?:\.\w+|\[\d+\])*): /.exec(message)?.[1]

/** The status of an error in an answer. Anthropic identifies it by its type, OpenAI by its code, Google by a number. */
const statusOf = ({ code, type }: Json.Fields): number | undefined => {
  if (typeof code === "number" && code >= 400 && code < 600) return code
  return statuses.get(code) ?? statuses.get(type)
}

const statuses: ReadonlyMap<unknown, number> = new Map([
  ["invalid_request_error", 400],
  ["context_length_exceeded", 400],
  ["invalid_prompt", 400],
  ["authentication_error", 401],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["request_too_large", 413],
  ["rate_limit_error", 429],
  ["rate_limit_exceeded", 429],
  ["insufficient_quota", 429],
  ["api_error", 500],
  ["server_error", 500],
  // OpenAI's in streams
  ["server_is_overloaded", 503],
  ["slow_down", 503],
  ["timeout_error", 504],
  ["overloaded_error", 529]
])

/** The code by which clients know that the request is too long and no retry helps. */
const contextCode = "context_length_exceeded"

/** The codes of OpenAI and Groq, and of llama.cpp. */
const contextCodes: ReadonlySet<string | null> = new Set([contextCode, "exceed_context_size_error"])

const contextMessages = [
  // OpenAI, vLLM, DeepSeek, Mistral
  /maximum context length/i,
  // Anthropic
  /prompt is too long/i,
  // Gemini
  /token count.*exceeds the maximum number of tokens/i,
  // SGLang; llama.cpp
  /longer than the model's context length|exceeds the available context size/i,
  // Bedrock
  /input is too long for requested model/i,
  // Cohere
  /too many tokens/i,
  // DashScope
  /range of input length should be/i,
  // TGI
  /`inputs` (?:tokens \+ `max_new_tokens` )?must (?:be <=|have less than)/i
]

/** Whether the request is longer than the model's context window, which each provider words differently. */
export const exceedsContext = ({ code, message, type }: Pick<ProviderRejected, "code" | "message" | "type">): boolean =>
  contextCodes.has(code) || contextCodes.has(type) || contextMessages.some((pattern) => pattern.test(message))

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "number" ? String(value) : undefined

/** Removes secrets from a text. */
export const redact = (message: string, secrets: ReadonlyArray<string>): string =>
  secrets.reduce((text, secret) => secret === "" ? text : text.replaceAll(secret, "[redacted]"), message)
