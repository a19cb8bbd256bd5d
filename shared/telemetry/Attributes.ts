/**
 * The names of span attributes, in one place: OpenTelemetry's conventions for GenAI are still moving.
 *
 * Never prompts, outputs or keys.
 */
export const name = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  requestModel: "gen_ai.request.model",
  responseModel: "gen_ai.response.model",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  httpMethod: "http.request.method",
  httpRoute: "http.route",
  httpStatus: "http.response.status_code",
  messagingSystem: "messaging.system",
  messagingOperation: "messaging.operation.type",
  messagingDestination: "messaging.destination.template",
  messageId: "messaging.message.id",
  errorType: "error.type",
  tenant: "gateway.tenant",
  jobAttempt: "gateway.job.attempt",
  attempt: "gateway.provider.attempt",
  failure: "gateway.provider.failure",
  retryAfterMs: "gateway.provider.retry_after_ms",
  queueMs: "gateway.queue.duration_ms"
} as const

/** A model at a provider. */
export const provider = (endpoint: { readonly name: string; readonly model: string }) => ({
  [name.provider]: endpoint.name,
  [name.requestModel]: endpoint.model
})

/** One call to a provider: the how manieth for its request, from 1. */
export const attempt = (
  call: {
    readonly operation: { readonly name: string }
    readonly endpoint: { readonly name: string; readonly model: string }
  },
  number: number
) => ({
  [name.operation]: call.operation.name,
  [name.attempt]: number,
  ...provider(call.endpoint)
})

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
export const usage = (usage: { readonly inputTokens: number; readonly outputTokens: number }) => ({
  [name.inputTokens]: usage.inputTokens,
  [name.outputTokens]: usage.outputTokens
})

/** A job, as its worker sees it. */
export const job = (
  job: { readonly id: string; readonly attempt: number; readonly operation: string; readonly model: string }
) => ({
  [name.messagingSystem]: "nats",
  [name.messagingOperation]: "process",
  [name.messageId]: job.id,
  [name.jobAttempt]: job.attempt,
  [name.operation]: job.operation,
  [name.requestModel]: job.model
})
