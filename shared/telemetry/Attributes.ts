/**
 * The attributes of spans. Their names are in one place because OpenTelemetry's GenAI conventions still change.
 *
 * Attributes never contain prompts, outputs or keys.
 */
import type { Tracer } from "effect"

export const name = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  requestModel: "gen_ai.request.model",
  isStream: "gen_ai.request.stream",
  responseModel: "gen_ai.response.model",
  finishReasons: "gen_ai.response.finish_reasons",
  /** Seconds. */
  firstChunk: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cachedTokens: "gen_ai.usage.cache_read.input_tokens",
  cacheWriteTokens: "gen_ai.usage.cache_creation.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
  /** How many of the tokens the gateway has estimated, because the provider reported none. */
  estimatedTokens: "gateway.usage.estimated_tokens",
  httpMethod: "http.request.method",
  httpRoute: "http.route",
  httpStatus: "http.response.status_code",
  urlScheme: "url.scheme",
  urlPath: "url.path",
  serverAddress: "server.address",
  clientAddress: "client.address",
  userAgent: "user_agent.original",
  messagingSystem: "messaging.system",
  messagingOperation: "messaging.operation.name",
  messagingOperationType: "messaging.operation.type",
  messagingDestination: "messaging.destination.name",
  messageId: "messaging.message.id",
  bodySize: "messaging.message.body.size",
  errorType: "error.type",
  requestId: "gateway.request.id",
  /** The gateway's operation, which is more specific than that of the GenAI conventions. */
  gatewayOperation: "gateway.operation",
  tenant: "gateway.tenant",
  cancelled: "gateway.cancelled",
  /** The answer failed after it had started. */
  broken: "gateway.answer.broken",
  jobAttempt: "gateway.job.attempt",
  delivery: "gateway.job.delivery",
  attempt: "gateway.provider.attempt",
  /** `first`, `retry` after a failed call, or `fallback` from another provider. */
  reason: "gateway.provider.reason",
  step: "gateway.provider.step",
  failure: "gateway.provider.failure",
  retryAfterMs: "gateway.provider.retry_after_ms",
  queueMs: "gateway.queue.duration_ms",
  /** The outcome of the guardrail's checks: `passed`, `refused` or `unchecked`. */
  checkedRequest: "gateway.guardrail.request",
  checkedAnswer: "gateway.guardrail.answer",
  /** The number of the checked part of an answer, from 0. */
  window: "gateway.guardrail.window"
} as const

/** Attributes with unbounded values: different in every request, or chosen by clients. */
export const unboundedNames: ReadonlySet<string> = new Set([
  name.bodySize,
  name.queueMs,
  name.retryAfterMs,
  name.window,
  name.firstChunk,
  name.inputTokens,
  name.outputTokens,
  name.cachedTokens,
  name.cacheWriteTokens,
  name.reasoningTokens,
  name.estimatedTokens,
  name.requestId,
  name.messageId,
  name.tenant,
  name.clientAddress,
  name.serverAddress,
  name.userAgent
])

/** The operations for which the GenAI conventions have a name. */
const genAiOperations: ReadonlyMap<string, string> = new Map([
  ["chat.completions", "chat"],
  ["messages", "chat"],
  ["responses", "chat"],
  ["completions", "text_completion"],
  ["embeddings", "embeddings"],
  ["engines.embeddings", "embeddings"],
  ["embedContent", "embeddings"],
  ["batchEmbedContents", "embeddings"],
  ["embed", "embeddings"],
  ["generateContent", "generate_content"],
  ["streamGenerateContent", "generate_content"]
])

export const genAiOperation = (operation: string): string => genAiOperations.get(operation) ?? operation

/** Sets attributes of a span. A function, because a record would have to be allocated for every span. */
export type Description = (span: Tracer.Span) => void

/** A model at a provider. */
interface Endpoint {
  readonly name: string
  readonly model: string
}

export const provider = (endpoint: Endpoint): Description => (span) => {
  span.attribute(name.provider, endpoint.name)
  span.attribute(name.requestModel, endpoint.model)
}

const call = (span: Tracer.Span, operation: string, endpoint: Endpoint): void => {
  span.attribute(name.operation, genAiOperation(operation))
  span.attribute(name.gatewayOperation, operation)
  provider(endpoint)(span)
}

/** A call to a provider. `number` counts the calls for the request, from 1. */
export const attempt = (
  operation: string,
  endpoint: Endpoint,
  number: number,
  reason: "first" | "retry" | "fallback" | "continuation"
): Description =>
(span) => {
  call(span, operation, endpoint)
  span.attribute(name.attempt, number)
  span.attribute(name.reason, reason)
}

/** A step of a video at a provider: submission, or polling to its end, possibly by another worker. */
export const videoStep = (endpoint: Endpoint, step: "start" | "follow"): Description => (span) => {
  call(span, "video.generations", endpoint)
  span.attribute(name.step, step)
}

/** Why a call failed: the error's kind and, if known, its detail, the provider's status and `retry-after`. */
export const failure = (error: {
  readonly _tag: string
  readonly reason?: string
  readonly phase?: string
  readonly status?: number | null
  readonly retryAfterMs?: number | null
}): Description =>
(span) => {
  const detail = error.reason ?? error.phase
  span.attribute(name.errorType, error._tag)
  if (detail !== undefined) span.attribute(name.failure, detail)
  if (typeof error.status === "number") span.attribute(name.httpStatus, error.status)
  if (typeof error.retryAfterMs === "number") span.attribute(name.retryAfterMs, error.retryAfterMs)
}

/** The usage of a finished call. */
export const usage = (usage: {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens?: number
  readonly cacheWriteTokens?: number
  readonly reasoningTokens?: number
  readonly estimatedTokens?: number
}): Description =>
(span) => {
  span.attribute(name.inputTokens, usage.inputTokens)
  span.attribute(name.outputTokens, usage.outputTokens)
  if (usage.cachedTokens !== undefined) span.attribute(name.cachedTokens, usage.cachedTokens)
  if (usage.cacheWriteTokens !== undefined) span.attribute(name.cacheWriteTokens, usage.cacheWriteTokens)
  if (usage.reasoningTokens !== undefined) span.attribute(name.reasoningTokens, usage.reasoningTokens)
  if (usage.estimatedTokens !== undefined) span.attribute(name.estimatedTokens, usage.estimatedTokens)
}

interface QueuedJob {
  readonly id: string
  readonly subject: string
  readonly operation: string
  readonly model: string
}

export interface PublishedJob extends QueuedJob {
  readonly bodySize: number
}

/** A message in the queue. */
const message = (span: Tracer.Span, doing: string, type: "send" | "process", job: QueuedJob): void => {
  span.attribute(name.messagingSystem, "nats")
  span.attribute(name.messagingOperation, doing)
  span.attribute(name.messagingOperationType, type)
  span.attribute(name.messagingDestination, job.subject)
  span.attribute(name.messageId, job.id)
  span.attribute(name.gatewayOperation, job.operation)
  span.attribute(name.requestModel, job.model)
}

/** A job published by ingress. */
export const published = (job: PublishedJob, attempt: number): Description => (span) => {
  message(span, "publish", "send", job)
  span.attribute(name.bodySize, job.bodySize)
  span.attribute(name.jobAttempt, attempt)
}

/** A job pulled by a worker. */
export const pulled = (
  job: QueuedJob & { readonly attempt: number; readonly delivery: number }
): Description =>
(span) => {
  message(span, "process", "process", job)
  span.attribute(name.jobAttempt, job.attempt)
  span.attribute(name.delivery, job.delivery)
}

/** The outcome of the guardrail's checks of the request or the answer. */
export const checked = (direction: "request" | "answer", outcome: string): Description => (span) =>
  span.attribute(direction === "request" ? name.checkedRequest : name.checkedAnswer, outcome)

/** One check by the guardrail. */
export const check = (
  about: { readonly operation: string; readonly model: string; readonly window?: number }
): Description =>
(span) => {
  span.attribute(name.gatewayOperation, about.operation)
  span.attribute(name.requestModel, about.model)
  if (about.window !== undefined) span.attribute(name.window, about.window)
}
