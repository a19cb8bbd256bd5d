/** Clients that stop reading, of a server with a short timeout. */
import { assert, it } from "@effect/vitest"
import { Buffer } from "node:buffer"
import { once } from "node:events"
import type { ServerResponse } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { afterEach, beforeEach, vi } from "vitest"
import * as HttpServer from "../../../shared/process/http/HttpServer.ts"

const sendTimeout = 120_000

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }))
afterEach(() => void vi.useRealTimers())

/** More than the system buffers of a connection, on both ends. */
const large = Buffer.alloc(32 * 1024 * 1024)

/** Runs a test with a function that sends a request; the test answers it. The client reads nothing by itself. */
const withServer = async (test: (ask: () => Promise<readonly [Socket, ServerResponse]>) => Promise<void>) => {
  const server = HttpServer.make({ sendTimeout })
  const sockets: Array<Socket> = []
  await once(server.listen(0, "127.0.0.1"), "listening")
  const { port } = server.address() as AddressInfo
  try {
    await test(async () => {
      const socket = connect(port, "127.0.0.1").on("error", () => {})
      sockets.push(socket)
      const asked = once(server, "request")
      socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n")
      const [, response] = await asked as [unknown, ServerResponse]
      return [socket, response]
    })
  } finally {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
}

it("a client that takes nothing of its answer is cut, and one that has nothing to take is not", () =>
  withServer(async (ask) => {
    const [quiet, events] = await ask()
    events.write("data: 1\n\n")
    // one whose answer is complete, and one whose answer still comes
    for (const end of [true, false]) {
      const [, response] = await ask()
      if (end) response.end(large)
      else response.write(large)
      const closed = once(response, "close")
      vi.advanceTimersByTime(2 * sendTimeout)
      await closed
      assert.isFalse(response.writableFinished)
    }
    events.end("data: 2\n\n")
    let text = ""
    for await (const piece of quiet) {
      text += String(piece)
      if (text.endsWith("0\r\n\r\n")) break
    }
    assert.match(text, /data: 1\n\n[^]*data: 2\n\n/)
  }))

it("a client that reads slowly gets its answer, even if that takes longer than the timeout", () =>
  withServer(async (ask) => {
    const [socket, response] = await ask()
    const closed = once(response, "close")
    response.end(large)
    let bytes = 0
    let tookMs = 0
    for await (const piece of socket) {
      const before = bytes
      bytes += (piece as Buffer).length
      // a pause for each megabyte
      if (before >> 20 !== bytes >> 20) {
        vi.advanceTimersByTime(sendTimeout / 12)
        tookMs += sendTimeout / 12
      }
      if (bytes > large.length) break
    }
    await closed
    assert.isTrue(response.writableFinished)
    assert.isAbove(tookMs, 2 * sendTimeout)
  }))
