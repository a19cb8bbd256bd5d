/**
 * One request of an operation and its response, from the headers to the last byte.
 *
 * Steps that never wait are plain calls in the socket's callbacks, because a fiber for each request would cost more than the steps
 * themselves. A step that may wait is an effect, and `run` continues when it has ended.
 */
import { Cause, Effect, Exit, type Fiber, Option, Tracer } from "effect"
import type { IncomingHttpHeaders } from "node:http"
import type { Readable, Writable } from "node:stream"
import { InternalError } from "../../../shared/contract/JobError.ts"
import type { Operation } from "../../../shared/contract/Operation.ts"
import { answerUnread } from "../../../shared/process/http/HttpServer.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import type { RequestError } from "../errors/IngressError.ts"
import type { Match } from "../paths/PathTemplate.ts"
import type { RequestRecord } from "../record/RequestRecord.ts"
import type { RequestRecords } from "../record/RequestRecords.ts"
import type { RequestHeaders } from "../record/ServerSpan.ts"

/** A request over HTTP, or a message on a WebSocket in its place. */
export interface Incoming extends Readable {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly headers: IncomingHttpHeaders
  /** Whether the whole request has been received. */
  readonly complete: boolean
  readonly socket: { readonly remoteAddress?: string | undefined }
}

export interface Outgoing extends Writable {
  readonly headersSent: boolean
  /** Headers are names and values in turn. */
  writeHead(status: number, headers: Array<string>): unknown
  writeContinue(): void
}

/** The parts that all exchanges of a server share. */
export interface Exchanges {
  readonly records: RequestRecords["Service"]
  readonly fork: <A>(effect: Effect.Effect<A, RequestError>) => Fiber.Fiber<A, RequestError>
}

export interface ResponseHead {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
}

/** A connection is kept if at most this many bytes of an unread body follow. Node reads and drops them. */
const maxDroppedBytes = 256 * 1024

export class Exchange {
  readonly operation: Operation
  readonly headers: RequestHeaders
  readonly record: RequestRecord
  readonly #exchanges: Exchanges
  readonly #request: Incoming
  readonly #response: Outgoing
  readonly #closers: Array<() => void> = []
  #waiting: Fiber.Fiber<unknown, RequestError> | undefined
  #giveBack: (() => void) | undefined
  #isClosed = false
  #isBroken = false

  constructor(
    exchanges: Exchanges,
    { operation, template }: Match,
    request: Incoming,
    response: Outgoing
  ) {
    this.#exchanges = exchanges
    this.operation = operation
    this.#request = request
    this.#response = response
    // Node joins repeated headers, except for `set-cookie`, which only responses have
    this.headers = request.headers as RequestHeaders
    this.record = exchanges.records.begin({
      method: request.method ?? "",
      headers: this.headers,
      route: template,
      remoteAddress: request.socket.remoteAddress
    })
    this.record.operation = operation.name
    response.on("close", () => this.#close())
  }

  get url(): string | undefined {
    return this.#request.url
  }

  /** Whether the client waits for permission to send its body. */
  get awaitsPermission(): boolean {
    return this.headers["expect"] !== undefined
  }

  /** The request, for reading its body. Permits the client to send it. */
  get source(): Incoming {
    if (this.awaitsPermission) this.#response.writeContinue()
    return this.#request
  }

  /** Registers a function to call when the last byte is written or the client has disconnected. The latest is called first. */
  whenClosed(closer: () => void): void {
    this.#closers.push(closer)
  }

  /** Registers what a refused request gives back, before its answer is made, and one whose client has left. Replaces an earlier one. */
  whenRefused(giveBack: () => void): void {
    this.#giveBack = giveBack
  }

  /** Calls `next` with the result of an effect, immediately if the effect need not wait. Answers with the error if it fails. */
  run<A>(effect: Effect.Effect<A, RequestError>, next: (value: A) => void): void {
    if (Exit.isExit(effect)) return this.#proceed(effect as Exit.Exit<A, RequestError>, next)
    const fiber = this.#exchanges.fork(Effect.provideService(effect, Tracer.ParentSpan, this.record.span))
    this.#waiting = fiber
    fiber.addObserver((exit) => {
      this.#waiting = undefined
      if (!this.#isClosed) this.#proceed(exit, next)
    })
  }

  /** Runs plain code that answers with an internal error if it throws. */
  guard(step: () => void): void {
    try {
      step()
    } catch (defect) {
      this.#die(Cause.die(defect))
    }
  }

  /** Sends a whole answer. */
  send({ headers, status }: ResponseHead, body: Uint8Array | string): void {
    if (this.#isClosed) return
    this.#writeHead(status, headers, Buffer.byteLength(body))
    this.#response.end(body)
  }

  /** Begins an answer whose body the caller writes until the exchange closes. */
  open({ headers, status }: ResponseHead): Writable {
    this.#writeHead(status, headers)
    return this.#response
  }

  /** Answers with an error, in the dialect of the operation. */
  fail(error: RequestError): void {
    if (this.#isClosed) return
    this.#giveBack?.()
    this.record.markFailed(error._tag)
    const { body, headers, status } = ErrorEnvelope.toText(this.operation.dialect, error, this.record.id)
    if (!this.#mayFollow) return this.send({ status, headers }, body)
    const further = this.#exchanges.records.answering(this.record, status)
    answerUnread(this.#request, this.#response, status, { headers: { ...headers, ...further }, body })
  }

  /** Cuts an answer that cannot be completed. */
  break(): void {
    this.#isBroken = true
    this.#response.destroy()
  }

  /** Whether the unread rest of the body may be too large to keep the connection. */
  get #mayFollow(): boolean {
    if (this.#request.complete) return false
    const { "content-length": length = 0, expect, "transfer-encoding": encoding } = this.headers
    return encoding !== undefined || expect !== undefined || Number(length) > maxDroppedBytes
  }

  #writeHead(status: number, headers: Readonly<Record<string, string>>, contentLength?: number): void {
    // names and values in turn, which Node writes as they are
    const all: Array<string> = []
    for (const each of [headers, this.#exchanges.records.answering(this.record, status)]) {
      for (const name in each) all.push(name, each[name] ?? "")
    }
    if (contentLength !== undefined) all.push("content-length", String(contentLength))
    this.#response.writeHead(status, all)
  }

  #proceed<A>(exit: Exit.Exit<A, RequestError>, next: (value: A) => void): void {
    if (Exit.isSuccess(exit)) return this.guard(() => next(exit.value))
    const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
    if (error === undefined) this.#die(exit.cause)
    else this.fail(error)
  }

  #die(cause: Cause.Cause<unknown>): void {
    this.#exchanges.fork(
      Effect.logError("request failed with an internal error", { requestId: this.record.id }, cause)
    )
    if (this.#response.headersSent) return this.break()
    this.fail(new InternalError())
  }

  #close(): void {
    this.#isClosed = true
    this.#waiting?.interruptUnsafe()
    for (const closer of this.#closers.toReversed()) closer()
    this.#giveBack?.()
    this.#exchanges.records.end(this.record, !this.#response.writableFinished && !this.#isBroken)
  }
}
