/**
 * What is told of one request: while it goes on, by the span of its server; when its answer has ended, by metrics and a
 * line of the log.
 */
import { Context, Exit, type Tracer } from "effect"
import type { Headers, HttpServerRequest } from "effect/http"
import { randomUUID } from "node:crypto"
import type { Operation, Workload } from "../../../shared/contract/Operation.ts"
import * as Attributes from "../../../shared/telemetry/Attributes.ts"
import * as Metrics from "../../../shared/telemetry/Metrics.ts"
import * as RouteTemplate from "../paths/RouteTemplate.ts"
import type { ServerSpans } from "./ServerSpan.ts"

/** Stands for what a request has not, or what is not known of it. */
const none = "none"

let inProgress = 0
Metrics.observeUnsafe(Metrics.inProgress(), () => inProgress)

export class RequestRecord {
  readonly id = RequestRecord.makeId()
  readonly #begun = performance.now()
  /** Its headers, which the platform makes anew at every look. */
  readonly headers: Headers.Headers
  readonly #method: string
  readonly #spans: ServerSpans
  /** Its template; `undefined` where no route has its path. */
  readonly #route: string | undefined
  readonly span: Tracer.Span
  operation = none
  /** What its answer says in further headers, good or bad; made when it is given. */
  answerHeaders: (() => Record<string, string>) | undefined
  #model = none
  #key: string | undefined
  #status = 0
  #firstByteMs: number | undefined
  #submitted = 0
  #queueMs: number | undefined
  #error: string | undefined
  #isBroken = false

  constructor(request: HttpServerRequest.HttpServerRequest, spans: ServerSpans) {
    this.#method = request.method
    this.#route = RouteTemplate.of(request.method, request.url)
    this.#spans = spans
    this.headers = request.headers
    this.span = spans.begin(request, this.headers, this.#route)
    this.span.attribute(Attributes.name.requestId, this.id)
  }

  static makeId(): string {
    return `req_${randomUUID()}`
  }

  /** The tag of what went wrong, or `cancelled`. */
  get error(): string | undefined {
    return this.#error
  }

  /** From here until it has ended it counts as one in progress. */
  begin(): void {
    inProgress++
  }

  /** Whose it is, as an opaque id. */
  authenticated(key: string): void {
    this.#key = key
    this.span.attribute(Attributes.name.tenant, key)
  }

  /** It will be served. */
  accepted(operation: Operation, model: string): void {
    this.#model = model
    this.span.attribute(Attributes.name.operation, Attributes.genAiOperation(operation.name))
    this.span.attribute(Attributes.name.gatewayOperation, operation.name)
    this.span.attribute(Attributes.name.requestModel, model)
  }

  /** It begins to wait for a worker. */
  submitted(): void {
    this.#submitted = performance.now()
  }

  /** A worker has it. */
  claimed(workload: Workload, pool: string): void {
    if (this.#queueMs !== undefined) return
    this.#queueMs = performance.now() - this.#submitted
    this.span.attribute(Attributes.name.queueMs, Math.round(this.#queueMs))
    Metrics.update(Metrics.queueWait(workload, pool), this.#queueMs / 1_000)
  }

  /** Its answer begins. */
  answering(): void {
    this.#firstByteMs ??= this.#elapsedMs()
  }

  /** It is answered by an error. */
  failed(error: string): void {
    this.#error = error
    this.span.attribute(Attributes.name.errorType, error)
  }

  /** The answer had begun, and cannot be brought to its end. */
  broken(error: string): void {
    this.failed(error)
    this.#isBroken = true
    this.span.attribute(Attributes.name.broken, true)
  }

  responded(status: number): void {
    this.#status = status
    this.span.attribute(Attributes.name.httpStatus, status)
  }

  /** The last byte is written, or nobody waits for it any more. */
  ended(isCancelled: boolean): void {
    inProgress--
    if (isCancelled) this.#error ??= "cancelled"
    this.span.end(this.#spans.now(), this.#exitOf(isCancelled))
    const outcome = this.#error ?? "success"
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
      method: this.#method,
      route: this.#route,
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

  /** What only its client got wrong is no failure of the server's. */
  #exitOf(isCancelled: boolean): Exit.Exit<void, { readonly _tag: string }> {
    if (isCancelled) return Exit.interrupt()
    return this.#isBroken || this.#status >= 500 ? Exit.fail({ _tag: this.#error ?? "Defect" }) : Exit.void
  }

  #elapsedMs(): number {
    return performance.now() - this.#begun
  }
}

/** The record of the request in hand. Its id is in the headers of the answer, and in the errors of some dialects. */
export class CurrentRequest extends Context.Service<CurrentRequest, RequestRecord>()(
  "services/ingress/CurrentRequest"
) {}
