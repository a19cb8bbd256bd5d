/**
 * Answers what never becomes a request, because it is no HTTP, its headers are too large, or it stops in the middle: with
 * an error of the usual form, where Node on its own would send a bare status line.
 */
import type { Server, ServerResponse } from "node:http"
import { STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import { requestIds } from "./AnswerHeaders.ts"
import * as ErrorEnvelope from "./ErrorEnvelope.ts"
import { RequestUnreadable } from "./IngressError.ts"
import { RequestRecord } from "./RequestRecord.ts"

/**
 * How long a refused client may go on sending, in milliseconds. To close at once what still has bytes to read would reset
 * the connection, and the client might never see why.
 */
const lingerMs = 1_000

const reasonOf = (error: NodeJS.ErrnoException): RequestUnreadable["reason"] => {
  switch (error.code) {
    case "HPE_HEADER_OVERFLOW":
      return "headers"
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return "extensions"
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return "timeout"
    default:
      return "syntax"
  }
}

const answerTo = (error: RequestUnreadable): string => {
  const id = RequestRecord.makeId()
  const { body, status } = ErrorEnvelope.toText("openai", error, id)
  const headers = {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    ...requestIds(id),
    connection: "close"
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join("")
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`
}

/** Makes the server answer such clients. */
export const handle = <S extends Server>(server: S): S => {
  const answers = new WeakMap<Duplex, ServerResponse>()
  const refused = new WeakSet<Duplex>()
  server.on("request", (request, response) => answers.set(request.socket, response))
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    // what else arrives is as unreadable
    if (refused.has(socket)) return
    const answer = answers.get(socket)
    const isAnswering = answer !== undefined && answer.headersSent && !answer.writableFinished
    if (!socket.writable || error.code === "ECONNRESET" || isAnswering) return socket.destroy()
    refused.add(socket)
    socket.end(answerTo(new RequestUnreadable({ reason: reasonOf(error) })))
    setTimeout(() => socket.destroy(), lingerMs).unref()
  })
  return server
}
