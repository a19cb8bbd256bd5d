/**
 * HTTP to providers: one exchange at a time, with back-pressure, deadlines and an abort that always reaches the socket.
 *
 * This is undici's dispatch interface without the layers above it, which cost several times as much per request. Pieces
 * of the answer are handed on as they come.
 */
import { Config, Context, Effect, Layer } from "effect"
import type { IncomingHttpHeaders } from "node:http"
import { Readable } from "node:stream"
import { Agent, type Dispatcher } from "undici"
import { atLeast } from "../../contract/Fields.ts"
import type { JobError } from "../../contract/JobError.ts"
import { ProviderFailed, ProviderTimeout } from "../../contract/JobError.ts"
import { type Commit, Commitment, none } from "./Commitment.ts"

export interface UpstreamRequest {
  /** The provider's name in the catalogue, for errors. */
  readonly provider: string
  /** `POST` unless said otherwise. */
  readonly method?: "GET" | "POST"
  readonly url: URL
  readonly headers: Record<string, string>
  readonly body?: Uint8Array
  /** Milliseconds; see the catalogue's `timeouts`. */
  readonly firstByteMs: number
  readonly idleMs: number
  readonly totalMs: number
}

/** What a receiver may do to the exchange it listens to. */
export interface ExchangeControl {
  /** Stops reading until `resume`. */
  readonly pause: () => void
  readonly resume: () => void
  /** Aborts the exchange with this error. */
  readonly fail: (error: JobError) => void
}

export interface Receiver {
  readonly onHead: (status: number, headers: IncomingHttpHeaders) => void
  readonly onData: (chunk: Uint8Array) => void
}

export class Upstream extends Context.Service<Upstream, {
  /**
   * Sends the request and feeds the receiver until the answer has ended. Fails with `ProviderFailed` (`unreachable`
   * before anything was sent, `cut` after it), `ProviderTimeout`, or whatever the receiver failed with. Interruption
   * closes the connection.
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
        exchange: (request, receiver) =>
          Effect.flatMap(Commitment, (commit) => exchange(agent, request, commit, receiver))
      })
    })
  )
}

/** The body once that has happened. Asked for when there is a connection; headers leave with the first bytes of a body. */
const after = (commit: Commit, body: Uint8Array): Readable => {
  const pieces = async function*() {
    await Effect.runPromise(commit)
    yield body
  }
  // nobody else listens where the call has ended before that
  return Readable.from(pieces(), { objectMode: false }).on("error", () => undefined)
}

const exchange = (
  agent: Agent,
  request: UpstreamRequest,
  commit: Commit,
  makeReceiver: (control: ExchangeControl) => Receiver
): Effect.Effect<void, JobError> =>
  Effect.callback<void, JobError>((resume) => {
    const running = new Exchange(request, makeReceiver, resume)
    const { body = null, headers, method = "POST", url } = request
    const sent = body === null || commit === none ? { headers, body } : {
      headers: { ...headers, "content-length": String(body.length) },
      body: after(Effect.tapError(commit, (error) => Effect.sync(() => running.fail(error))), body)
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
    return Effect.sync(() => running.abandon())
  })

/** One exchange, as undici tells of it. */
class Exchange implements Dispatcher.DispatchHandler, ExchangeControl {
  readonly #provider: string
  readonly #receiver: Receiver
  readonly #resume: (result: Effect.Effect<void, JobError>) => void
  readonly #deadline: NodeJS.Timeout
  #controller: Dispatcher.DispatchController | undefined
  /** What one read of the socket has brought is handed on as one piece, in however many the provider sent it: each costs. */
  #read: Array<Uint8Array> = []
  #aborted = false
  #over = false

  constructor(
    { provider, totalMs }: UpstreamRequest,
    makeReceiver: (control: ExchangeControl) => Receiver,
    resume: (result: Effect.Effect<void, JobError>) => void
  ) {
    this.#provider = provider
    this.#resume = resume
    // a timer, not `Effect.timeout`, which races two more fibers for every request
    this.#deadline = setTimeout(() => this.fail(new ProviderTimeout({ provider, phase: "total" })), totalMs)
    this.#receiver = makeReceiver(this)
  }

  pause(): void {
    this.#controller?.pause()
  }

  resume(): void {
    this.#controller?.resume()
  }

  fail(error: JobError): void {
    this.#settle(Effect.fail(error))
    this.#abort()
  }

  /** Nobody waits for it any more. */
  abandon(): void {
    this.#over = true
    clearTimeout(this.#deadline)
    this.#abort()
  }

  /** There is a connection, and the request is about to be written to it. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    // an abort that came before there was a connection would otherwise be lost
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
    this.#settle(Effect.void)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: NodeJS.ErrnoException): void {
    this.#deliver()
    this.#settle(Effect.fail(networkFailure(this.#provider, error.code, this.#controller !== undefined)))
  }

  #deliver(): void {
    const read = this.#read
    const [first] = read
    if (first === undefined) return
    this.#read = []
    if (!this.#over) this.#receiver.onData(read.length === 1 ? first : Buffer.concat(read))
  }

  #settle(result: Effect.Effect<void, JobError>): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#deadline)
    this.#resume(result)
  }

  #abort(): void {
    this.#aborted = true
    this.#controller?.abort(new Error("no longer wanted"))
  }
}

/** By the code of what failed below HTTP, and by whether anything was sent before. */
export const networkFailure = (provider: string, code: string | undefined, sent: boolean): JobError => {
  switch (code) {
    case "UND_ERR_CONNECT_TIMEOUT":
      return new ProviderTimeout({ provider, phase: "connect" })
    case "UND_ERR_HEADERS_TIMEOUT":
      return new ProviderTimeout({ provider, phase: "first byte" })
    case "UND_ERR_BODY_TIMEOUT":
      return new ProviderTimeout({ provider, phase: "idle" })
    default:
      return new ProviderFailed({
        provider,
        reason: sent ? "cut" : "unreachable",
        status: null,
        retryAfterMs: null
      })
  }
}
