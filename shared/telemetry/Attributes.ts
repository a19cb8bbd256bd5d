/**
 * The names of span attributes, in one place: OpenTelemetry's conventions for GenAI are still moving.
 *
 * Never prompts, outputs or keys.
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
  /** Our own name of the operation: GenAI's says less. */
  gatewayOperation: "gateway.operation",
  tenant: "gateway.tenant",
  cancelled: "gateway.cancelled",
  /** The answer had begun, and could not be brought to its end. */
  broken: "gateway.answer.broken",
  jobAttempt: "gateway.job.attempt",
  delivery: "gateway.job.delivery",
  attempt: "gateway.provider.attempt",
  /** Why a call was made: `first`, `retry` of one that failed, or `fallback` from another provider. */
  reason: "gateway.provider.reason",
  step: "gateway.provider.step",
  failure: "gateway.provider.failure",
  retryAfterMs: "gateway.provider.retry_after_ms",
  queueMs: "gateway.queue.duration_ms"
} as const

/** Those that are another in every request, or whatever a client makes them. */
export const individual: ReadonlySet<string> = new Set([
  name.requestId,
  name.messageId,
  name.tenant,
  name.clientAddress,
  name.serverAddress,
  name.userAgent
])

/** What GenAI calls our operations, where it knows them. */
const genAiOperations: ReadonlyMap<string, string> = new Map([
  ["chat.completions", "chat"],
  ["messages", "chat"],
  ["completions", "text_completion"],
  ["embeddings", "embeddings"],
  ["engines.embeddings", "embeddings"],
  ["generateContent", "generate_content"],
  ["streamGenerateContent", "generate_content"]
])

export const genAiOperation = (operation: string): string => genAiOperations.get(operation) ?? operation

/** Tells a span what it is of. Not a record of attributes, which would be made anew for every span. */
export type Description = (span: Tracer.Span) => void

/** A model at a provider. */
export const provider = (endpoint: { readonly name: string; readonly model: string }): Description => (span) => {
  span.attribute(name.provider, endpoint.name)
  span.attribute(name.requestModel, endpoint.model)
}

const call = (
  span: Tracer.Span,
  operation: string,
  endpoint: { readonly name: string; readonly model: string }
): void => {
  span.attribute(name.operation, genAiOperation(operation))
  span.attribute(name.gatewayOperation, operation)
  provider(endpoint)(span)
}

/** One call to a provider: the how manieth for its request, from 1, and why. */
export const attempt = (
  operation: string,
  endpoint: { readonly name: string; readonly model: string },
  number: number,
  reason: "first" | "retry" | "fallback"
): Description =>
(span) => {
  call(span, operation, endpoint)
  span.attribute(name.attempt, number)
  span.attribute(name.reason, reason)
}

/** A video at a provider: its task is begun there, and then followed to its end, maybe by another worker. */
export const videoStep = (
  endpoint: { readonly name: string; readonly model: string },
  step: "start" | "follow"
): Description =>
(span) => {
  call(span, "video.generations", endpoint)
  span.attribute(name.step, step)
}

/** Why a call failed: the kind of error and, where it has them, what exactly, the provider's status, and when to come back. */
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

/** What a finished call consumed. */
export const usage = (usage: {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens?: number
  readonly cacheWriteTokens?: number
  readonly reasoningTokens?: number
}): Description =>
(span) => {
  span.attribute(name.inputTokens, usage.inputTokens)
  span.attribute(name.outputTokens, usage.outputTokens)
  if (usage.cachedTokens !== undefined) span.attribute(name.cachedTokens, usage.cachedTokens)
  if (usage.cacheWriteTokens !== undefined) span.attribute(name.cacheWriteTokens, usage.cacheWriteTokens)
  if (usage.reasoningTokens !== undefined) span.attribute(name.reasoningTokens, usage.reasoningTokens)
}

interface QueuedJob {
  readonly id: string
  readonly subject: string
  readonly operation: string
  readonly model: string
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

/** A job on its way to a worker. */
export const published = (job: QueuedJob & { readonly bodySize: number }, attempt: number): Description => (span) => {
  message(span, "publish", "send", job)
  span.attribute(name.bodySize, job.bodySize)
  span.attribute(name.jobAttempt, attempt)
}

/** A job, as its worker sees it. */
export const pulled = (
  job: QueuedJob & { readonly attempt: number; readonly delivery: number }
): Description =>
(span) => {
  message(span, "process", "process", job)
  span.attribute(name.jobAttempt, job.attempt)
  span.attribute(name.delivery, job.delivery)
}
