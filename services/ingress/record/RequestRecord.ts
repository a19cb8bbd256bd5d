/** Telemetry of one request: its span while it runs, then metrics and a line of the log when its answer has ended. */
import { Context, Exit, type Tracer } from "effect"
import { randomUUID } from "node:crypto"
import type { Operation, Workload } from "../../../shared/contract/Operation.ts"
import * as Attributes from "../../../shared/telemetry/Attributes.ts"
import * as Metrics from "../../../shared/telemetry/Metrics.ts"
import * as Outcome from "../../../shared/telemetry/Outcome.ts"
import type * as ServerSpan from "./ServerSpan.ts"

/** Stands for a missing or unknown operation or model. */
const none = "none"

export class RequestRecord {
  readonly id = RequestRecord.makeId()
  readonly #begun = performance.now()
  readonly #head: ServerSpan.RequestHead
  readonly #spans: ServerSpan.ServerSpans
  readonly span: Tracer.Span
  operation = none
  /** Makes further headers of the response, successful or not. */
  answerHeaders: (() => Record<string, string>) | undefined
  #model = none
  #key: string | undefined
  #status = 0
  #firstByteMs: number | undefined
  #submitted = 0
  #queueMs: number | undefined
  #error: string | undefined
  #isBroken = false

  constructor(head: ServerSpan.RequestHead, spans: ServerSpan.ServerSpans) {
    this.#head = head
    this.#spans = spans
    this.span = spans.begin(head)
    this.span.attribute(Attributes.name.requestId, this.id)
  }

  static makeId(): string {
    return `req_${randomUUID()}`
  }

  /** The outcome of a request without a complete answer. */
  get error(): string | undefined {
    return this.#error
  }

  /** `key` is the key's id. */
  setKey(key: string): void {
    this.#key = key
    this.span.attribute(Attributes.name.tenant, key)
  }

  /** The request is valid. */
  setModel(operation: Operation, model: string): void {
    this.#model = model
    this.span.attribute(Attributes.name.operation, Attributes.genAiOperation(operation.name))
    this.span.attribute(Attributes.name.gatewayOperation, operation.name)
    this.span.attribute(Attributes.name.requestModel, model)
  }

  /** The request starts waiting for a worker. */
  markSubmitted(): void {
    this.#submitted = performance.now()
  }

  /** A worker has claimed the job. */
  markClaimed(workload: Workload, pool: string): void {
    if (this.#queueMs !== undefined) return
    this.#queueMs = performance.now() - this.#submitted
    this.span.attribute(Attributes.name.queueMs, Math.round(this.#queueMs))
    Metrics.update(Metrics.queueWait(workload, pool), this.#queueMs / 1_000)
  }

  /** The answer starts. */
  markAnswering(): void {
    this.#firstByteMs ??= this.#elapsedMs()
  }

  /** The answer is an error. */
  markFailed(error: string): void {
    this.#error = error
    this.span.attribute(Attributes.name.errorType, error)
  }

  /** The answer failed after it had started. */
  markBroken(error: string): void {
    this.markFailed(error)
    this.#isBroken = true
    this.span.attribute(Attributes.name.broken, true)
  }

  setStatus(status: number): void {
    this.#status = status
    this.span.attribute(Attributes.name.httpStatus, status)
  }

  /** The last byte is written, or the client has disconnected. */
  end(isCancelled: boolean): void {
    if (isCancelled) this.#error ??= Outcome.cancelled
    this.span.end(this.#spans.now(), this.#exitOf(isCancelled))
    const outcome = this.#error ?? Outcome.success
    const model = outcome === "ModelNotFound" ? "unknown" : this.#model
    Metrics.update(Metrics.requests(this.operation, model, outcome), 1)
    Metrics.update(Metrics.requestDuration(this.operation, model), this.#elapsedMs() / 1_000)
    if (this.#firstByteMs !== undefined) {
      Metrics.update(Metrics.firstByte(this.operation, model), this.#firstByteMs / 1_000)
    }
    if (this.#key !== undefined) Metrics.update(Metrics.keyRequests(this.#key, outcome), 1)
  }

  toLog(): object {
    return {
      method: this.#head.method,
      route: this.#head.route,
      status: this.#status,
      operation: this.operation,
      model: this.#model,
      tenant: this.#key,
      durationMs: Math.round(this.#elapsedMs()),
      firstByteMs: this.#firstByteMs === undefined ? undefined : Math.round(this.#firstByteMs),
      queueMs: this.#queueMs === undefined ? undefined : Math.round(this.#queueMs),
      error: this.#error,
      requestId: this.id,
      traceId: this.span.traceId
    }
  }

  /** Errors of the client do not fail the server's span. */
  #exitOf(isCancelled: boolean): Exit.Exit<void, { readonly _tag: string }> {
    if (isCancelled) return Exit.interrupt()
    return this.#isBroken || this.#status >= 500 ? Exit.fail({ _tag: this.#error ?? "Defect" }) : Exit.void
  }

  #elapsedMs(): number {
    return performance.now() - this.#begun
  }
}

/** The record of the current request. Its id is in the response headers, and in the errors of some dialects. */
export class CurrentRequest extends Context.Service<CurrentRequest, RequestRecord>()(
  "services/ingress/record/CurrentRequest"
) {}
