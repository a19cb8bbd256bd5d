/** Clients that send a body slowly or not at all, of a server whose seconds the test counts. */
import { assert, it } from "@effect/vitest"
import { Buffer } from "node:buffer"
import { once } from "node:events"
import type { IncomingMessage } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { afterEach, beforeEach, vi } from "vitest"
import * as UnreadableRequest from "../../../services/ingress/answer/UnreadableRequest.ts"
import * as HttpServer from "../../../shared/process/http/HttpServer.ts"
import { hold, letGo } from "../../../shared/process/http/ReceiveRate.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }))
afterEach(() => void vi.useRealTimers())

interface Asked {
  readonly socket: Socket
  readonly request: IncomingMessage
  /** Sends bytes of the body, and waits until the server has read them. */
  readonly send: (bytes: number) => Promise<void>
  /** The answer, once the server has closed the connection. */
  readonly answer: Promise<string>
}

/** Runs a test with a request whose body is announced and not sent. */
const withRequest = async (
  test: (asked: Asked) => Promise<void>,
  { reads = true, framing = "content-length: 9999999" } = {}
) => {
  const server = UnreadableRequest.handle(HttpServer.make())
  await once(server.listen(0, "127.0.0.1"), "listening")
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {})
  const pieces: Array<Buffer> = []
  socket.on("data", (piece: Buffer) => pieces.push(piece))
  const answer = once(socket, "close").then(() => Buffer.concat(pieces).toString())
  try {
    const asked = once(server, "request")
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${framing}\r\n\r\n`)
    const [request] = await asked as [IncomingMessage]
    if (reads) request.on("data", () => {}).on("error", () => {})
    const send = async (bytes: number) => {
      if (bytes === 0) return
      const arrived = reads ? once(request, "data") : Promise.resolve()
      socket.write(Buffer.alloc(bytes))
      await arrived
    }
    await test({ socket, request, send, answer })
  } finally {
    socket.destroy()
    server.close()
  }
}

const second = () => vi.advanceTimersByTime(1_000)

/** How many seconds a client has that sends this many bytes in each second; at most 100. */
const secondsUntilRefused = async ({ request, send }: Asked, bytesIn: (second: number) => number) => {
  let isClosed = false
  request.once("close", () => isClosed = true)
  request.socket.once("finish", () => isClosed = true)
  for (let seconds = 0; seconds < 100; seconds++) {
    await send(bytesIn(seconds))
    second()
    if (isClosed || request.socket.writableEnded) return seconds + 1
  }
  return 100
}

// Kestrel refuses after its grace period what came with less than 240 bytes a second on average (`MinRequestBodyDataRate`)
const cases: ReadonlyArray<readonly [name: string, bytesIn: (second: number) => number, seconds: number]> = [
  ["nothing", () => 0, 10],
  ["one byte", (second) => second === 0 ? 1 : 0, 10],
  ["a byte each second", () => 1, 10],
  ["239 bytes each second", () => 239, 10],
  ["240 bytes each second", () => 240, 100],
  ["nothing for nine seconds, and then enough for ten", (second) => second === 9 ? 2_400 : 0, 11],
  ["nothing for nine seconds, and then as fast as it can", (second) => second === 9 ? 60_000 : 0, 41],
  // much that came early makes up for half a minute
  ["60 kB, and then nothing", (second) => second === 0 ? 60_000 : 0, 32],
  ["60 kB, and then a byte each second", (second) => second === 0 ? 60_000 : 1, 32],
  ["60 kB every 25 seconds", (second) => second % 25 === 0 ? 60_000 : 0, 100]
]
for (const [name, bytesIn, seconds] of cases) {
  it(`a client that sends ${name} has ${seconds === 100 ? "all the time" : `${seconds} seconds`}`, () =>
    withRequest(async (asked) => {
      assert.strictEqual(await secondsUntilRefused(asked, bytesIn), seconds)
    }))
}

it.each([
  "content-length: 33554432",
  "content-length: 1",
  "content-length: 33554432\r\nexpect: 100-continue",
  "transfer-encoding: chunked",
  "transfer-encoding: chunked\r\nexpect: 100-continue"
])("a body announced by `%s` that never comes is refused with 408", (framing) =>
  withRequest(async ({ answer }) => {
    for (let seconds = 0; seconds < 10; seconds++) second()
    const text = await answer
    assert.match(text, /HTTP\/1\.1 408 /)
    assert.match(text, /"The request body arrived at less than 240 bytes per second"/)
  }, { framing }))

it("a client whose body is not read for want of memory is not slow", () =>
  withRequest(async (asked) => {
    hold(asked.request)
    for (let seconds = 0; seconds < 50; seconds++) second()
    letGo(asked.request)
    assert.strictEqual(await secondsUntilRefused(asked, () => 0), 10)
  }))

it("a client whose bytes wait for the server is not slow", () =>
  withRequest(async ({ request, send }) => {
    const readable = once(request, "readable")
    await send(100)
    await readable
    for (let seconds = 0; seconds < 50; seconds++) second()
    assert.isFalse(request.socket.writableEnded)
  }, { reads: false }))

it("a client that waits for the answer to its complete request is not slow", () =>
  withRequest(async ({ request, send }) => {
    const ended = once(request, "end")
    await send(1)
    await ended
    for (let seconds = 0; seconds < 50; seconds++) second()
    assert.isFalse(request.socket.writableEnded)
  }, { framing: "content-length: 1" }))
