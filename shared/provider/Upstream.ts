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
import type { JobError } from "../contract/JobError.ts"
import { ProviderFailed, ProviderTimeout } from "../contract/JobError.ts"
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
      const connectMs = yield* Config.Int("UPSTREAM_CONNECT_TIMEOUT_MS").pipe(Config.withDefault(5_000))
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
    let controller: Dispatcher.DispatchController | undefined
    let aborted = false
    let over = false
    const settle = (result: Effect.Effect<void, JobError>) => {
      if (over) return
      over = true
      clearTimeout(deadline)
      resume(result)
    }
    const fail = (error: JobError) => {
      settle(Effect.fail(error))
      abort()
    }
    // a timer, not `Effect.timeout`, which races two more fibers for every request
    const deadline = setTimeout(
      () => fail(new ProviderTimeout({ provider: request.provider, phase: "total" })),
      request.totalMs
    )
    const abort = () => {
      aborted = true
      controller?.abort(new Error("no longer wanted"))
    }
    const receiver = makeReceiver({
      pause: () => controller?.pause(),
      resume: () => controller?.resume(),
      fail
    })
    // what one read of the socket has brought is handed on as one piece, in however many the provider sent it: each costs
    let read: Array<Uint8Array> = []
    const deliver = () => {
      const [first, ...more] = read
      read = []
      if (first !== undefined && !over) receiver.onData(more.length === 0 ? first : Buffer.concat([first, ...more]))
    }
    const { body = null, headers } = request
    const refused = (error: JobError) => Effect.sync(() => settle(Effect.fail(error)))
    const sent = body === null || commit === none ? { headers, body } : {
      headers: { ...headers, "content-length": String(body.length) },
      body: after(Effect.tapError(commit, refused), body)
    }
    agent.dispatch({
      origin: request.url.origin,
      path: request.url.pathname + request.url.search,
      method: request.method ?? "POST",
      ...sent,
      headersTimeout: request.firstByteMs,
      bodyTimeout: request.idleMs
    }, {
      // there is a connection, and the request is about to be written to it
      onRequestStart: (started) => {
        controller = started
        // an abort that came before there was a connection would otherwise be lost
        if (aborted) started.abort(new Error("no longer wanted"))
      },
      onResponseStart: (_controller, status, headers) => {
        if (!over) receiver.onHead(status, headers)
      },
      onResponseData: (_controller, chunk) => {
        if (read.push(chunk) === 1) queueMicrotask(deliver)
      },
      onResponseEnd: () => {
        deliver()
        settle(Effect.void)
      },
      onResponseError: (_controller, error) => {
        deliver()
        settle(Effect.fail(networkFailure(request.provider, codeOf(error), controller !== undefined)))
      }
    })
    return Effect.sync(() => {
      over = true
      clearTimeout(deadline)
      abort()
    })
  })

const codeOf = (error: NodeJS.ErrnoException): string | undefined => error.code

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
