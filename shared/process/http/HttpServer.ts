/**
 * Makes the HTTP server of every service. The server accepts only the protocol upgrades that it was made for. It rejects ambiguous
 * request heads: if a proxy in front of the gateway read one differently, an attacker could smuggle a request into another client's
 * connection.
 */
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerOptions,
  type ServerResponse
} from "node:http"
import type { Duplex, Readable, Writable } from "node:stream"
import { closeIdle } from "./CloseIdle.ts"
import { accepted, headErrorOf } from "./RequestHead.ts"
import { refuseSlow } from "./ReceiveRate.ts"
import { cutUnread, sendTimeoutMs } from "./SendTimeout.ts"

/** Why a request is rejected, in one sentence for the client. */
export interface Rejection {
  readonly status: 400 | 417
  readonly message: string
}

export interface RejectionAnswer {
  readonly headers: OutgoingHttpHeaders
  readonly body: string
}

export interface Options extends Omit<ServerOptions, "requireHostHeader" | "shouldUpgradeCallback"> {
  /** Makes the answer to a rejected request. Default: the message as text. */
  readonly answerRejected?: (rejection: Rejection) => RejectionAnswer
  /** How long a client may take nothing while bytes wait for it, in milliseconds. Default: two minutes. */
  readonly sendTimeout?: number
  /** Handles requests in place of the server's listeners. Returns whether it handles this one. Default: none. */
  readonly take?: (request: IncomingMessage, response: ServerResponse) => boolean
  /**
   * Which requests may upgrade to another protocol, and the handler of their connections. The server ignores other `Upgrade` headers,
   * as RFC 9110 allows, and serves those requests with their bodies. Default: none.
   */
  readonly upgrades?: {
    readonly accepts: (request: IncomingMessage) => boolean
    readonly take: (request: IncomingMessage, socket: Duplex, head: Buffer) => void
  }
}

/**
 * How long a rejected client may continue to send, in milliseconds. Closing a connection with unread bytes would reset it, and the
 * client might miss the answer.
 */
export const lingerMs = 1_000

const asText = ({ message }: Rejection): RejectionAnswer => ({
  headers: { "content-type": "text/plain" },
  body: `${message}\n`
})

const expectationFailed: Rejection = { status: 417, message: "The Expect header must be '100-continue'" }

const rejectionOf = (request: IncomingMessage, isUnmetExpectation: boolean): Rejection | undefined => {
  const message = headErrorOf(request)
  if (message !== undefined) return { status: 400, message }
  return isUnmetExpectation ? expectationFailed : undefined
}

const noUpgrades = { accepts: () => false, take: (_: IncomingMessage, socket: Duplex) => socket.destroy() }

/** Node's events for a new request. */
const requestEvents: ReadonlySet<string> = new Set(["request", "checkContinue", "checkExpectation"])

/** Answers immediately without reading the request, and closes the connection at the request's end or after `lingerMs`. */
export const answerUnread = (
  request: Readable,
  response: Writable & { readonly writeHead: (status: number, headers: Array<string>) => unknown },
  status: number,
  { body, headers }: RejectionAnswer
): void => {
  const all = { ...headers, "content-length": Buffer.byteLength(body), connection: "close" }
  response.writeHead(status, Object.entries(all).flatMap(([name, value]) => [name, String(value)]))
  response.write(body)
  const close = () => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(close, lingerMs).unref()
  request.once("end", close).on("error", () => {}).resume()
}

/**
 * Passes only requests with an unambiguous head to the server's listeners. Accepts no further request from a connection once it is
 * uncertain where the next one starts.
 */
const guard = <S extends Server>(
  server: S,
  ignored: WeakSet<IncomingMessage>,
  { answerRejected, take, upgrades }: Required<Pick<Options, "answerRejected" | "take" | "upgrades">>
): S => {
  const rejected = new WeakSet<Duplex>()
  const ended = new WeakSet<Duplex>()
  const emit: (event: string, ...parts: Array<unknown>) => boolean = server.emit.bind(server)
  const emitAccepted = (event: string, ...parts: Array<unknown>): boolean => {
    // the client already has its answer
    if (event === "clientError" && rejected.has(parts[1] as Duplex)) return true
    if (event === "upgrade") {
      const [request, socket, head] = parts as [IncomingMessage, Duplex, Buffer]
      emit(accepted, request)
      upgrades.take(request, socket, head)
      return true
    }
    if (!requestEvents.has(event)) return emit(event, ...parts)
    const [request, response] = parts as [IncomingMessage, ServerResponse]
    const { socket } = request
    if (ended.has(socket)) return true
    const rejection = rejectionOf(request, event === "checkExpectation")
    if (rejection !== undefined) {
      ended.add(socket)
      rejected.add(socket)
      answerUnread(request, response, rejection.status, answerRejected(rejection))
      return true
    }
    if (ignored.delete(request)) {
      ended.add(socket)
      response.shouldKeepAlive = false
    }
    emit(accepted, request, response)
    return take(request, response) || emit(event, ...parts)
  }
  // without a listener Node sends a bare 417
  return Object.assign(server.on("checkExpectation", () => {}), { emit: emitAccepted })
}

export const make = ({
  answerRejected = asText,
  sendTimeout = sendTimeoutMs,
  take = () => false,
  upgrades = noUpgrades,
  ...options
}: Options = {}): Server => {
  // requests with ignored upgrades: Node's parser drops bytes after such a head, so the next one may start in the middle of another
  const ignored = new WeakSet<IncomingMessage>()
  const server = createServer({
    ...options,
    // Node would answer a missing Host header with a bare status line
    requireHostHeader: false,
    shouldUpgradeCallback: (request) => {
      const isUpgrade = headErrorOf(request) === undefined && upgrades.accepts(request)
      if (!isUpgrade) ignored.add(request)
      return isUpgrade
    }
  })
  return refuseSlow(cutUnread(closeIdle(guard(server, ignored, { answerRejected, take, upgrades })), sendTimeout))
}
