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
  attempt: "gateway.job.attempt",
  queueMs: "gateway.queue.duration_ms"
} as const

/** One attempt at a provider. */
export const attempt = (call: {
  readonly operation: { readonly name: string }
  readonly model: string
  readonly endpoint: { readonly name: string; readonly model: string }
}) => ({
  [name.operation]: call.operation.name,
  [name.provider]: call.endpoint.name,
  [name.requestModel]: call.endpoint.model
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
  [name.attempt]: job.attempt,
  [name.operation]: job.operation,
  [name.requestModel]: job.model
})
