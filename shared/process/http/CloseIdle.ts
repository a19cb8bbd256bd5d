/**
 * Closes the idle connections of a closing server, so that the server ends after its last answer. Node alone would wait for
 * connections that are kept alive, or were opened in advance.
 */
import type { IncomingMessage, Server } from "node:http"
import type { Socket } from "node:net"
import { accepted } from "./RequestHead.ts"

/** How often a closing server checks, in milliseconds; a new connection has the same time for its first request. */
const checkMs = 500

export const closeIdle = <S extends Server>(server: S): S => {
  const unused = new Set<Socket>()
  server.on("connection", (socket) => {
    unused.add(socket)
    socket.once("close", () => unused.delete(socket))
  })
  server.on(accepted, ({ socket }: IncomingMessage) => unused.delete(socket))
  const close = server.close.bind(server)
  server.close = (done) => {
    const timer = setInterval(() => {
      server.closeIdleConnections()
      for (const socket of unused) socket.destroy()
    }, checkMs).unref()
    server.once("close", () => clearInterval(timer))
    return close(done)
  }
  return server
}
