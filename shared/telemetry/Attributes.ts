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

const operation = (operation: string) => ({
  [name.operation]: genAiOperation(operation),
  [name.gatewayOperation]: operation
})

/** A model at a provider. */
export const provider = (endpoint: { readonly name: string; readonly model: string }) => ({
  [name.provider]: endpoint.name,
  [name.requestModel]: endpoint.model
})

/** One call to a provider: the how manieth for its request, from 1, and why. */
export const attempt = (
  call: {
    readonly operation: string
    readonly endpoint: { readonly name: string; readonly model: string }
  },
  number: number,
  reason: "first" | "retry" | "fallback"
) => ({
  ...operation(call.operation),
  ...provider(call.endpoint),
  [name.attempt]: number,
  [name.reason]: reason
})

/** A video at a provider: its task is begun there, and then followed to its end, maybe by another worker. */
export const videoStep = (
  endpoint: { readonly name: string; readonly model: string },
  step: "start" | "follow"
) => ({ ...operation("video.generations"), ...provider(endpoint), [name.step]: step })

/** Why a call failed: the kind of error and, where it has them, what exactly, the provider's status, and when to come back. */
export const failure = (error: {
  readonly _tag: string
  readonly reason?: string
  readonly phase?: string
  readonly status?: number | null
  readonly retryAfterMs?: number | null
}) => ({
  [name.errorType]: error._tag,
  ...(error.reason === undefined && error.phase === undefined ? {} : { [name.failure]: error.reason ?? error.phase }),
  ...(typeof error.status === "number" ? { [name.httpStatus]: error.status } : {}),
  ...(typeof error.retryAfterMs === "number" ? { [name.retryAfterMs]: error.retryAfterMs } : {})
})

/** What a finished call consumed. */
export const usage = (usage: {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cachedTokens?: number
  readonly reasoningTokens?: number
}) => ({
  [name.inputTokens]: usage.inputTokens,
  [name.outputTokens]: usage.outputTokens,
  ...(usage.cachedTokens === undefined ? {} : { [name.cachedTokens]: usage.cachedTokens }),
  ...(usage.reasoningTokens === undefined ? {} : { [name.reasoningTokens]: usage.reasoningTokens })
})

/** A message in the queue. */
const message = (
  doing: { readonly name: string; readonly type: string },
  job: { readonly id: string; readonly subject: string; readonly operation: string; readonly model: string }
) => ({
  [name.messagingSystem]: "nats",
  [name.messagingOperation]: doing.name,
  [name.messagingOperationType]: doing.type,
  [name.messagingDestination]: job.subject,
  [name.messageId]: job.id,
  [name.gatewayOperation]: job.operation,
  [name.requestModel]: job.model
})

const publishing = { name: "publish", type: "send" }
const processing = { name: "process", type: "process" }

/** A job on its way to a worker. */
export const published = (
  job: {
    readonly id: string
    readonly subject: string
    readonly operation: string
    readonly model: string
    readonly bodySize: number
  },
  attempt: number
) => ({ ...message(publishing, job), [name.bodySize]: job.bodySize, [name.jobAttempt]: attempt })

/** A job, as its worker sees it. */
export const pulled = (job: {
  readonly id: string
  readonly subject: string
  readonly operation: string
  readonly model: string
  readonly attempt: number
  readonly delivery: number
}) => ({
  ...message(processing, job),
  [name.jobAttempt]: job.attempt,
  [name.delivery]: job.delivery
})

/** Tells a span all of them. */
export const set = (span: Tracer.Span, attributes: Readonly<Record<string, unknown>>): void => {
  // not by `Object.entries`, which makes a list of lists of them
  for (const key in attributes) span.attribute(key, attributes[key])
}
