/**
 * Answers requests that Node cannot parse: invalid or incomplete HTTP, and headers that are too large or ambiguous. They get
 * an error in the usual format; Node alone would send only a status line.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Duplex } from "node:stream"
import type { Rejection, RejectionAnswer } from "../../../shared/process/http/HttpServer.ts"
import { tooSlow } from "../../../shared/process/http/ReceiveRate.ts"
import { accepted } from "../../../shared/process/http/RequestHead.ts"
import { RequestUnreadable } from "../errors/IngressError.ts"
import { answerTo, writeTo } from "./RawAnswer.ts"

/** Reasons by Node's error code. All other codes are errors of syntax. */
const reasons: Readonly<Record<string, RequestUnreadable["reason"]>> = {
  HPE_HEADER_OVERFLOW: "headers",
  HPE_CHUNK_EXTENSIONS_OVERFLOW: "extensions",
  ERR_HTTP_REQUEST_TIMEOUT: "timeout",
  [tooSlow]: "slow"
}

/** The response to a request that the server rejects because of its headers. */
export const answerRejected = ({ message, status }: Rejection): RejectionAnswer =>
  answerTo("openai", new RequestUnreadable({ reason: status === 417 ? "expectation" : "syntax", detail: message }))

const noProxy = "CONNECT is not supported: the gateway is not a proxy"

/** Adds the answers to a server. */
export const handle = <S extends Server>(server: S): S => {
  const answers = new WeakMap<Duplex, ServerResponse>()
  const refused = new WeakSet<Duplex>()
  const refuse = (socket: Duplex, error: RequestUnreadable) => {
    refused.add(socket)
    writeTo(socket, "openai", error)
  }
  server.on(accepted, (request: IncomingMessage, response: ServerResponse) => answers.set(request.socket, response))
  // without a listener for `connect`, Node closes the connection without an answer
  server.on("connect", (_, socket) => {
    const answer = answers.get(socket)
    if (answer !== undefined && !answer.writableFinished) return socket.destroy()
    refuse(socket.on("error", () => {}), new RequestUnreadable({ reason: "syntax", detail: noProxy }))
  })
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    // further bytes of a rejected connection fail again
    if (refused.has(socket)) return
    const answer = answers.get(socket)
    const isAnswering = answer !== undefined && answer.headersSent && !answer.writableFinished
    if (!socket.writable || error.code === "ECONNRESET" || isAnswering) return socket.destroy()
    refuse(socket, new RequestUnreadable({ reason: reasons[error.code ?? ""] ?? "syntax" }))
  })
  return server
}
