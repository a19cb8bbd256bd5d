/**
 * Refuses requests whose body arrives too slowly. Such a request would hold a connection, memory and a unit of its key's limits until the
 * timeout of the whole request.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { accepted } from "./RequestHead.ts"

/** The least rate of a body, on average. Kestrel has the same by default. */
export const leastBytesPerSecond = 240

/** How long a body may take whatever its rate, and how long an earlier faster rate may make up for silence, in seconds. */
const graceSeconds = 10
const mostAheadSeconds = 30

/** The bodies that are not read at the moment, for want of memory: a mark on each, which ends with it. */
const held = new WeakSet<object>()

/** From now on it is not the client's fault that the body does not arrive. */
export const hold = (body: object): void => void held.add(body)
export const letGo = (body: object): void => void held.delete(body)

/** The code of the error with which the server's `clientError` reports such a request. */
export const tooSlow = "ERR_BODY_TOO_SLOW"

interface Arrival {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  /** The bytes of the connection at the last check. */
  seen: number
  /** How long the client has had, and by how much it is ahead of the least rate, in seconds. */
  seconds: number
  ahead: number
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0

/** Whether the client has to wait for us: we have not read what has already arrived. */
const isOurTurn = (request: IncomingMessage): boolean => held.has(request) || request.readableLength > 0

/** Refuses slow requests of a server. Seconds are counted as checks, because a process that was frozen has received nothing. */
export const refuseSlow = <S extends Server>(server: S): S => {
  const arrivals = new Map<Socket, Arrival>()
  const refuse = ({ response }: Arrival, socket: Socket) => {
    const error = Object.assign(new Error("The request body arrives too slowly"), { code: tooSlow })
    if (response.headersSent || !server.emit("clientError", error, socket)) socket.destroy()
  }
  const check = () => {
    for (const [socket, arrival] of arrivals) {
      const { request } = arrival
      if (request.complete || socket.destroyed) {
        arrivals.delete(socket)
        continue
      }
      const bytes = socket.bytesRead - arrival.seen
      arrival.seen += bytes
      if (isOurTurn(request)) continue
      arrival.seconds++
      arrival.ahead = Math.min(mostAheadSeconds, arrival.ahead + bytes / leastBytesPerSecond - 1)
      if (arrival.seconds < graceSeconds || arrival.ahead >= 0) continue
      arrivals.delete(socket)
      refuse(arrival, socket)
    }
  }
  server.on(accepted, (request: IncomingMessage, response?: ServerResponse) => {
    if (response === undefined || !hasBody(request)) return
    // a part of the body may have come with the head
    arrivals.set(request.socket, { request, response, seen: request.socket.bytesRead, seconds: 0, ahead: 0 })
  })
  server.on("listening", () => {
    const timer = setInterval(check, 1_000).unref()
    server.once("close", () => clearInterval(timer))
  })
  return server
}
