/**
 * HTTP exchanges with providers: streamed, with back-pressure, deadlines and an abort that always reaches the socket.
 *
 * It uses undici's dispatch interface directly: the layers above cost several times as much per request.
 */
import { Cause, Config, Context, Effect, Exit, Layer } from "effect"
import type { IncomingHttpHeaders } from "node:http"
import { Readable } from "node:stream"
import { Agent, type Dispatcher } from "undici"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { atLeast } from "../../contract/Fields.ts"
import { type JobError, ProviderFailed, ProviderTimeout } from "../../contract/JobError.ts"
import { type Commit, Commitment, none } from "./Commitment.ts"

export interface UpstreamRequest {
  /** The provider's name in the catalogue, for errors. */
  readonly provider: string
  /** Default `POST`. */
  readonly method?: "GET" | "POST"
  readonly url: URL
  readonly headers: Record<string, string>
  readonly body?: Uint8Array
  /** Milliseconds; see the catalogue's `timeouts`. */
  readonly firstByteMs: number
  readonly idleMs: number
  readonly totalMs: number
  /** Absent: no limit. */
  readonly firstTokenMs?: number | undefined
}

/** A receiver's control over its exchange. */
export interface ExchangeControl {
  readonly pause: () => void
  readonly resume: () => void
  /** Content has arrived, which ends `firstTokenMs`. May be called more than once. */
  readonly noteContent: () => void
  /** Aborts the exchange with this error. */
  readonly fail: (error: JobError) => void
}

export interface Receiver {
  readonly onHead: (status: number, headers: IncomingHttpHeaders) => void
  readonly onData: (chunk: Uint8Array) => void
}

export class Upstream extends Context.Service<Upstream, {
  /**
   * Sends the request and feeds the receiver until the answer has ended. Fails with `ProviderFailed` (`unreachable` if
   * nothing was sent, otherwise `cut`), with `ProviderTimeout`, or with the receiver's error. Interruption closes the
   * connection.
   */
  readonly exchange: (
    request: UpstreamRequest,
    receiver: (control: ExchangeControl) => Receiver
  ) => Effect.Effect<void, JobError>
}>()("shared/provider/Upstream") {
  /** Reads `UPSTREAM_CONNECT_TIMEOUT_MS` (default 5,000). */
  static readonly layer = Layer.effect(
    Upstream,
    Effect.gen(function*() {
      const connectMs = yield* Config.schema(atLeast(1), "UPSTREAM_CONNECT_TIMEOUT_MS").pipe(Config.withDefault(5_000))
      const agent = yield* Effect.acquireRelease(
        Effect.sync(() => new Agent({ connect: { timeout: connectMs }, keepAliveTimeout: 30_000, pipelining: 1 })),
        (agent) => Effect.promise(() => agent.destroy())
      )
      return Upstream.of({
        exchange: (request, receiver) => Fiberless.suspend((run) => exchange(agent, run, request, receiver))
      })
    })
  )
}

/** Sends the body after the commitment. undici reads it once connected, and sends the headers with its first bytes. */
const bodyAfter = (commit: Commit, context: Context.Context<never>, body: Uint8Array): Readable =>
  new Readable({
    read() {
      // not interrupted with the call: the job's other attempts share the commitment
      Effect.runCallbackWith(context)(commit, {
        onExit: (exit) => {
          if (Exit.isFailure(exit)) return this.destroy(new Error(Cause.pretty(exit.cause)))
          this.push(body)
          this.push(null)
        }
      })
    }
  }).on("error", () => undefined)

const exchange = (
  agent: Agent,
  { context }: Fiberless.Run,
  request: UpstreamRequest,
  makeReceiver: (control: ExchangeControl) => Receiver
): Effect.Effect<void, JobError> =>
  Fiberless.callback((resume) => {
    const commit = Context.get(context, Commitment)
    const running = new Exchange(request, makeReceiver, resume)
    const { body = null, headers, method = "POST", url } = request
    const sent = body === null || commit === none ? { headers, body } : {
      headers: { ...headers, "content-length": String(body.length) },
      body: bodyAfter(Effect.tapError(commit, (error) => Effect.sync(() => running.fail(error))), context, body)
    }
    agent.dispatch({
      origin: url.origin,
      path: url.pathname + url.search,
      method,
      headers: sent.headers,
      body: sent.body,
      headersTimeout: request.firstByteMs,
      bodyTimeout: request.idleMs
    }, running)
    return () => running.abandon()
  })

/** The handler of one exchange's events from undici. */
class Exchange implements Dispatcher.DispatchHandler, ExchangeControl {
  readonly #provider: string
  readonly #receiver: Receiver
  readonly #resume: (result: Exit.Exit<void, JobError>) => void
  readonly #deadline: NodeJS.Timeout
  #firstToken: NodeJS.Timeout | undefined
  #controller: Dispatcher.DispatchController | undefined
  /** The chunks of one read of the socket. The receiver gets them as one piece, because each piece has a cost. */
  #read: Array<Uint8Array> = []
  #aborted = false
  #over = false

  constructor(
    { firstTokenMs, provider, totalMs }: UpstreamRequest,
    makeReceiver: (control: ExchangeControl) => Receiver,
    resume: (result: Exit.Exit<void, JobError>) => void
  ) {
    this.#provider = provider
    this.#resume = resume
    const failIn = (ms: number, phase: ProviderTimeout["phase"]) =>
      setTimeout(() => this.fail(new ProviderTimeout({ provider, phase })), ms)
    this.#deadline = failIn(totalMs, "total")
    if (firstTokenMs !== undefined) this.#firstToken = failIn(firstTokenMs, "first token")
    this.#receiver = makeReceiver(this)
  }

  pause(): void {
    this.#controller?.pause()
  }

  resume(): void {
    this.#controller?.resume()
  }

  noteContent(): void {
    if (this.#firstToken === undefined) return
    clearTimeout(this.#firstToken)
    this.#firstToken = undefined
  }

  fail(error: JobError): void {
    this.#settle(Exit.fail(error))
    this.#abort()
  }

  /** Aborts without a result: the call was interrupted. */
  abandon(): void {
    this.#end()
    this.#abort()
  }

  /** undici has a connection and is about to write the request. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // an abort before the connection would otherwise be lost
    if (this.#aborted) this.#abort()
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (!this.#over) this.#receiver.onHead(status, headers)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#read.push(chunk) === 1) queueMicrotask(() => this.#deliver())
  }

  onResponseEnd(): void {
    this.#deliver()
    this.#settle(Exit.void)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: NodeJS.ErrnoException): void {
    this.#deliver()
    this.#settle(Exit.fail(networkFailure(this.#provider, error.code, this.#controller !== undefined)))
  }

  #deliver(): void {
    const read = this.#read
    const [first] = read
    if (first === undefined) return
    this.#read = []
    if (!this.#over) this.#receiver.onData(read.length === 1 ? first : Buffer.concat(read))
  }

  #settle(result: Exit.Exit<void, JobError>): void {
    if (this.#over) return
    this.#end()
    this.#resume(result)
  }

  #end(): void {
    this.#over = true
    clearTimeout(this.#deadline)
    this.noteContent()
  }

  #abort(): void {
    this.#aborted = true
    this.#controller?.abort(new Error("no longer wanted"))
  }
}

/** The error for a failure below HTTP, by its code and by whether anything was sent. */
export const networkFailure = (provider: string, code: string | undefined, sent: boolean): JobError => {
  switch (code) {
    case "UND_ERR_CONNECT_TIMEOUT":
      return new ProviderTimeout({ provider, phase: "connect" })
    case "UND_ERR_HEADERS_TIMEOUT":
      return new ProviderTimeout({ provider, phase: "first byte" })
    case "UND_ERR_BODY_TIMEOUT":
      return new ProviderTimeout({ provider, phase: "idle" })
    default:
      return new ProviderFailed({ provider, reason: sent ? "cut" : "unreachable" })
  }
}
