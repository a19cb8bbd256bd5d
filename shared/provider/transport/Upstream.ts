/**
 * Runs HTTP exchanges with providers: streamed, with back-pressure, deadlines, and an abort that always reaches the socket.
 *
 * Uses undici's dispatch interface directly, because the layers above it cost several times as much per request.
 *
 * Speaks HTTP/1.1, also to servers that offer HTTP/2. With HTTP/2, undici would use a dead connection for further calls, take an answer
 * that the server breaks off for a whole one, and send headers before the commitment.
 */
import { Cause, Config, Context, Effect, Exit, Layer } from "effect"
import { Readable } from "node:stream"
import { Agent, type Dispatcher } from "undici"
import * as ContentCoding from "../../bounds/ContentCoding.ts"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { atLeast } from "../../contract/Fields.ts"
import { type JobError, ProviderFailed, ProviderTimeout } from "../../contract/JobError.ts"
import { type Commit, Commitment, none } from "./Commitment.ts"
import { Deadlines, type Timed } from "./Deadlines.ts"
import { codingsOf, type ResponseHeaders } from "./ResponseHeaders.ts"

/** A URL, split into the parts that a request needs. */
export interface Address {
  /** Scheme, host and port. */
  readonly origin: string
  /** The path with the query. */
  readonly path: string
}

export interface UpstreamRequest {
  /** The provider's name in the catalogue, for errors. */
  readonly provider: string
  /** Default `POST`. */
  readonly method?: "GET" | "POST"
  readonly address: Address
  /** Names and values, alternating. */
  readonly headers: ReadonlyArray<string>
  readonly body?: Uint8Array
  /** The error at a time limit. By default it does not name the limit. */
  readonly timedOut?: (phase: Exclude<ProviderTimeout["phase"], "connect">) => ProviderTimeout
  /** Milliseconds; see the catalogue's `timeouts`. */
  readonly firstByteMs: number
  readonly idleMs: number
  readonly totalMs: number
  /** `undefined` for no limit. */
  readonly firstTokenMs?: number | undefined
}

/** A receiver's control over its exchange. */
export interface ExchangeControl {
  readonly pause: () => void
  readonly resume: () => void
  /** Content has arrived, so `firstTokenMs` no longer applies. May be called more than once. */
  readonly noteContent: () => void
  /** Aborts the exchange with this error. */
  readonly fail: (error: JobError) => void
}

export interface Receiver {
  readonly onHead: (status: number, headers: ResponseHeaders) => void
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
}>()("shared/provider/transport/Upstream") {
  /** Reads `UPSTREAM_CONNECT_TIMEOUT_MS` (default 5,000). */
  static readonly layer = Layer.effect(
    Upstream,
    Effect.gen(function*() {
      const connectMs = yield* Config.schema(atLeast(1), "UPSTREAM_CONNECT_TIMEOUT_MS").pipe(Config.withDefault(5_000))
      const agent = yield* Effect.acquireRelease(
        Effect.sync(() =>
          new Agent({ allowH2: false, connect: { timeout: connectMs }, keepAliveTimeout: 30_000, pipelining: 1 })
        ),
        (agent) => Effect.promise(() => agent.destroy())
      )
      const deadlines = new Deadlines()
      return Upstream.of({
        exchange: (request, receiver) => Fiberless.suspend((run) => exchange(agent, deadlines, run, request, receiver))
      })
    })
  )
}

/** The body of a request that is sent only after the commitment. undici reads it once connected, and sends no headers before. */
const bodyAfter = (commit: Commit, context: Context.Context<never>, body: Uint8Array): Readable =>
  new Readable({
    read() {
      // not interrupted with the call, because the job's other attempts share the commitment
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
  deadlines: Deadlines,
  { context }: Fiberless.Run,
  request: UpstreamRequest,
  makeReceiver: (control: ExchangeControl) => Receiver
): Effect.Effect<void, JobError> =>
  Fiberless.callback((resume) => {
    const commit = Context.get(context, Commitment)
    const running = new Exchange(request, deadlines, makeReceiver, resume)
    const { address: { origin, path }, body = null, headers, method = "POST" } = request
    const sent = body === null || commit === none ? { headers, body } : {
      headers: [...headers, "content-length", String(body.length)],
      body: bodyAfter(Effect.tapError(commit, (error) => Effect.sync(() => running.fail(error))), context, body)
    }
    agent.dispatch({
      origin,
      path,
      method,
      headers: sent.headers as Array<string>,
      body: sent.body,
      // off, because `Deadlines` checks these timeouts
      headersTimeout: 0,
      bodyTimeout: 0
    }, running)
    return () => running.abandon()
  })

/**
 * The bounds of answers that are compressed although no request asks for it. Text that repeats itself is compressed to a hundredth;
 * a larger ratio is an attack.
 */
const decodingBounds = { maxBytes: 64 * 1024 * 1024, maxRatio: 200 }

/** The handler of one exchange's events from undici. */
class Exchange implements Dispatcher.DispatchHandler, ExchangeControl, Timed {
  readonly id: number
  readonly #request: UpstreamRequest
  readonly #deadlines: Deadlines
  readonly #receiver: Receiver
  readonly #resume: (result: Exit.Exit<void, JobError>) => void
  readonly #endAt: number
  /** The deadline for the first content; infinite once content has arrived. */
  #contentAt: number
  /** The deadline for the next bytes from the provider. */
  #silentAt = Infinity
  #isHeard = false
  #hasHead = false
  #controller: Dispatcher.DispatchController | undefined
  /** Decodes an answer that is compressed. */
  #decoding: ContentCoding.Decoding | undefined
  #isErrorStatus = false
  /** Why the connection is not read: the receiver or the decoder has enough. */
  #isReceiverPaused = false
  #isDecoderFull = false
  /** The provider has sent everything, or why not. */
  #end: Exit.Exit<void, JobError> | undefined
  /** The chunks of one read of the socket, which the receiver gets as one piece, because each piece has a cost. */
  #read: Array<Uint8Array> = []
  #aborted = false
  #over = false

  constructor(
    request: UpstreamRequest,
    deadlines: Deadlines,
    makeReceiver: (control: ExchangeControl) => Receiver,
    resume: (result: Exit.Exit<void, JobError>) => void
  ) {
    this.#request = request
    this.#deadlines = deadlines
    this.#resume = resume
    this.id = deadlines.nextId()
    deadlines.add(this)
    this.#endAt = deadlines.in(request.totalMs)
    this.#contentAt = deadlines.in(request.firstTokenMs ?? Infinity)
    this.#receiver = makeReceiver(this)
  }

  pause(): void {
    this.#isReceiverPaused = true
    this.#decoding?.last.pause()
    this.#controller?.pause()
  }

  resume(): void {
    this.#isReceiverPaused = false
    this.#decoding?.last.resume()
    this.#readOn()
  }

  #readOn(): void {
    if (!this.#isReceiverPaused && !this.#isDecoderFull) this.#controller?.resume()
  }

  noteContent(): void {
    this.#contentAt = Infinity
  }

  check(now: number): void {
    if (this.#end === undefined && (this.#isHeard || this.#controller?.paused === true)) {
      this.#isHeard = false
      this.#silentAt = this.#deadlines.in(this.#hasHead ? this.#request.idleMs : this.#request.firstByteMs)
    }
    if (now >= this.#endAt) this.#timeOut("total")
    else if (now >= this.#contentAt) this.#timeOut("first token")
    else if (now >= this.#silentAt) this.#timeOut(this.#hasHead ? "idle" : "first byte")
  }

  #timeOut(phase: Exclude<ProviderTimeout["phase"], "connect">): void {
    const { provider, timedOut } = this.#request
    this.fail(timedOut?.(phase) ?? new ProviderTimeout({ provider, phase }))
  }

  fail(error: JobError): void {
    this.#settle(Exit.fail(error))
    this.#abort()
  }

  /** Aborts an interrupted call, without a result. */
  abandon(): void {
    this.#close()
    this.#abort()
  }

  /** undici has a connection and is about to write the request. */
  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    this.#silentAt = this.#deadlines.in(this.#request.firstByteMs)
    // repeats an abort from before the connection, which had no effect
    if (this.#aborted) this.#abort()
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: ResponseHeaders): void {
    this.#isHeard = true
    // an informational head, which another one follows
    if (status < 200) return
    this.#hasHead = true
    if (this.#over) return
    this.#isErrorStatus = status >= 300
    const codings = codingsOf(headers)
    try {
      this.#receiver.onHead(status, headers)
      if (codings === undefined) this.#failDecoding("its content encoding is not supported")
      else this.#decode(codings)
    } catch (defect) {
      this.#die(defect)
    }
  }

  #decode(codings: ReadonlyArray<ContentCoding.ContentCoding>): void {
    const decoding = this.#decoding = ContentCoding.decoding(codings, decodingBounds)
    if (decoding === undefined) return
    decoding.first.on("drain", () => {
      this.#isDecoderFull = false
      this.#readOn()
    })
    decoding.last
      .on("data", (piece: Uint8Array) => this.#receive(piece))
      .on("end", () => this.#settle(this.#end ?? Exit.void))
      .on("error", (error) => {
        // what was decoded of an answer that is cut has been passed on
        if (this.#end !== undefined && Exit.isFailure(this.#end)) return this.#settle(this.#end)
        const isTooLarge = error instanceof ContentCoding.Undecodable && error.reason === "size"
        this.#failDecoding(isTooLarge ? "it is compressed, and too large" : "it cannot be decompressed")
      })
  }

  /** An answer with an error status is read as far as it can be, for its status says enough. */
  #failDecoding(detail: string): void {
    this.#settle(
      this.#isErrorStatus ? Exit.void : Exit.fail(ProviderFailed.malformed(this.#request.provider, detail))
    )
    this.#abort()
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    this.#isHeard = true
    if (this.#read.push(chunk) === 1) queueMicrotask(() => this.#deliver())
  }

  onResponseEnd(): void {
    this.#deliver()
    this.#finish(Exit.void)
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: NodeJS.ErrnoException): void {
    this.#deliver()
    this.#finish(Exit.fail(networkFailure(this.#request.provider, error.code, this.#controller !== undefined)))
  }

  #finish(end: Exit.Exit<void, JobError>): void {
    const decoding = this.#decoding
    if (decoding === undefined || this.#over) return this.#settle(end)
    this.#end = end
    this.#silentAt = Infinity
    decoding.first.end()
  }

  #deliver(): void {
    const read = this.#read
    const [first] = read
    if (first === undefined) return
    this.#read = []
    if (this.#over) return
    const bytes = read.length === 1 ? first : Buffer.concat(read)
    if (this.#decoding === undefined) return this.#receive(bytes)
    if (this.#decoding.first.write(bytes)) return
    this.#isDecoderFull = true
    this.#controller?.pause()
  }

  #receive(bytes: Uint8Array): void {
    if (this.#over) return
    try {
      this.#receiver.onData(bytes)
    } catch (defect) {
      this.#die(defect)
    }
  }

  /** Ends this call alone: an exception in a callback would end the process, with the calls of all others. */
  #die(defect: unknown): void {
    this.#settle(Exit.die(defect))
    this.#abort()
  }

  #settle(result: Exit.Exit<void, JobError>): void {
    if (this.#over) return
    this.#close()
    this.#resume(result)
  }

  #close(): void {
    this.#over = true
    this.#decoding?.last.destroy()
    this.#deadlines.delete(this)
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
      return new ProviderTimeout({ provider, phase: "connect", limit: "UPSTREAM_CONNECT_TIMEOUT_MS of the workers" })
    case "UND_ERR_HEADERS_TIMEOUT":
      return new ProviderTimeout({ provider, phase: "first byte" })
    case "UND_ERR_BODY_TIMEOUT":
      return new ProviderTimeout({ provider, phase: "idle" })
    default:
      return new ProviderFailed({ provider, reason: sent ? "cut" : "unreachable" })
  }
}
