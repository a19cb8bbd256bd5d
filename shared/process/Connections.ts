/**
 * Lets a server that was told to close end as soon as its last answer has been given. Node by itself would wait for
 * connections on which nothing happens: those that clients keep for further requests, and those opened in advance.
 */
import type { Server } from "node:http"
import type { Socket } from "node:net"

/** How often a closing server looks for such connections, in milliseconds: also the time that a first request has left. */
const lookMs = 500

export const closeIdle = <S extends Server>(server: S): S => {
  const unused = new Set<Socket>()
  server.on("connection", (socket) => {
    unused.add(socket)
    socket.once("close", () => unused.delete(socket))
  })
  server.on("request", (request) => unused.delete(request.socket))
  const look = setInterval(() => {
    if (server.listening) return
    server.closeIdleConnections()
    for (const socket of unused) socket.destroy()
  }, lookMs).unref()
  server.once("close", () => clearInterval(look))
  return server
}
