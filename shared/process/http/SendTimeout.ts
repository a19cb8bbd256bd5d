/**
 * Cuts the connections of clients that stop reading. Such a client's system keeps its connection alive, and with it the unread part of
 * the answer and, while a provider still streams, a worker's slot. Node's own timeout also counts the silence of an answer that has
 * nothing to send, such as a stream of events while its model thinks.
 */
import type { Server } from "node:http"
import type { Socket } from "node:net"

/** How long a client may take none of the bytes that wait for it, in milliseconds. */
export const sendTimeoutMs = 120_000

/**
 * How often a connection is checked within that time. The checks are counted instead of the time, because a process that was frozen
 * has given its clients nothing to read.
 */
const checks = 12

/** Node's timeout reads this part of a socket, too: without it, a large write would show no progress before its last byte. */
interface Sending {
  readonly _handle?: { readonly writeQueueSize?: number } | null
}

/** A number that changes when the system takes bytes of a socket. */
const progressOf = (socket: Socket & Sending): number =>
  socket.bytesWritten - socket.writableLength - (socket._handle?.writeQueueSize ?? 0)

/** Destroys each connection of a server whose client takes nothing for this long while bytes wait for it. */
export const cutUnread = <S extends Server>(server: S, timeoutMs: number): S => {
  const connections = new Map<Socket, { progress: number; checksWithout: number }>()
  const check = () => {
    for (const [socket, seen] of connections) {
      if (socket.writableLength === 0) {
        seen.checksWithout = 0
        continue
      }
      const progress = progressOf(socket)
      seen.checksWithout = progress === seen.progress ? seen.checksWithout + 1 : 0
      seen.progress = progress
      if (seen.checksWithout >= checks) socket.destroy()
    }
  }
  server.on("connection", (socket) => {
    connections.set(socket, { progress: 0, checksWithout: 0 })
    socket.once("close", () => connections.delete(socket))
  })
  server.on("listening", () => {
    const timer = setInterval(check, timeoutMs / checks).unref()
    server.once("close", () => clearInterval(timer))
  })
  return server
}
