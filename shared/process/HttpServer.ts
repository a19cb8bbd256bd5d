/**
 * The HTTP server of every service: takes no protocol upgrades, and rejects requests whose head two readers could understand
 * differently. A load balancer or proxy in front of the gateway decides by the same bytes where a request goes and where it
 * ends; where the two disagree, an attacker smuggles a request into another client's connection.
 */
import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type Server,
  type ServerOptions,
  type ServerResponse
} from "node:http"
import type { Duplex } from "node:stream"
import { closeIdle } from "./Connections.ts"
import { mistakeOf } from "./RequestHead.ts"

/** Why a request is rejected: one sentence for the client. */
export interface Rejection {
  readonly status: 400 | 417
  readonly message: string
}

/** The answer to a rejected request. */
export interface RejectionAnswer {
  readonly headers: OutgoingHttpHeaders
  readonly body: string
}

export interface Options extends Omit<ServerOptions, "requireHostHeader" | "shouldUpgradeCallback"> {
  /** What to answer to a rejected request. Default: the message as text. */
  readonly answerRejected?: (rejection: Rejection) => RejectionAnswer
  /**
   * Which requests may leave HTTP for another protocol. RFC 9110 lets a server ignore any `Upgrade`: it then serves the
   * HTTP/1.1 request that carries the header, with its body. Default: none.
   */
  readonly mayUpgrade?: (request: IncomingMessage) => boolean
}

/**
 * How long a rejected client may go on sending, in milliseconds. Closing a connection that still has bytes to read would reset
 * it, and the client might never see why.
 */
export const lingerMs = 1_000

const asText = ({ message }: Rejection): RejectionAnswer => ({
  headers: { "content-type": "text/plain" },
  body: `${message}\n`
})

const expectationFailed: Rejection = { status: 417, message: "The Expect header must be '100-continue'" }

const rejectionOf = (request: IncomingMessage, isUnmetExpectation: boolean): Rejection | undefined => {
  const message = mistakeOf(request)
  if (message !== undefined) return { status: 400, message }
  return isUnmetExpectation ? expectationFailed : undefined
}

/** The events by which Node hands over a request. */
const requestEvents: ReadonlySet<string> = new Set(["request", "checkContinue", "checkExpectation"])

/** Answers at once, and closes the connection when the client has sent its request or has had time to read the answer. */
const answer = (
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  { body, headers }: RejectionAnswer
): void => {
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body), connection: "close" })
  response.write(body)
  const close = () => {
    clearTimeout(timer)
    response.end()
  }
  const timer = setTimeout(close, lingerMs).unref()
  request.once("end", close).on("error", () => {}).resume()
}

/**
 * Hands a request to the server's listeners, whenever they were added, only if its head is unambiguous. Takes no further
 * request from a connection of which it no longer knows where the next one begins.
 */
const guard = <S extends Server>(
  server: S,
  ignored: WeakSet<IncomingMessage>,
  answerRejected: NonNullable<Options["answerRejected"]>
): S => {
  const rejected = new WeakSet<Duplex>()
  const ended = new WeakSet<Duplex>()
  const emit: (event: string, ...parts: Array<unknown>) => boolean = server.emit.bind(server)
  const emitAccepted = (event: string, ...parts: Array<unknown>): boolean => {
    // whatever else the client sends, it has its answer
    if (event === "clientError" && rejected.has(parts[1] as Duplex)) return true
    if (!requestEvents.has(event)) return emit(event, ...parts)
    const [request, response] = parts as [IncomingMessage, ServerResponse]
    const { socket } = request
    if (ended.has(socket)) return true
    const rejection = rejectionOf(request, event === "checkExpectation")
    if (rejection !== undefined) {
      ended.add(socket)
      rejected.add(socket)
      answer(request, response, rejection.status, answerRejected(rejection))
      return true
    }
    if (ignored.delete(request)) {
      ended.add(socket)
      response.shouldKeepAlive = false
    }
    return emit(event, ...parts)
  }
  // Node asks only if there is a listener, and else sends a bare 417
  return Object.assign(server.on("checkExpectation", () => {}), { emit: emitAccepted })
}

export const make = ({ answerRejected = asText, mayUpgrade = () => false, ...options }: Options = {}): Server => {
  // Node's parser drops what has arrived behind such a request: the next bytes may begin in the middle of another
  const ignored = new WeakSet<IncomingMessage>()
  const server = createServer({
    ...options,
    // a missing Host is rejected like any other mistake, where Node would send a bare status line
    requireHostHeader: false,
    shouldUpgradeCallback: (request) => {
      const isUpgrade = mayUpgrade(request)
      if (!isUpgrade) ignored.add(request)
      return isUpgrade
    }
  })
  return closeIdle(guard(server, ignored, answerRejected))
}
