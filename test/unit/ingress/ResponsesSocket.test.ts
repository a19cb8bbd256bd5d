/** The bounds of a WebSocket for responses: lanes, running answers, memory, age, silence, and the end of its ingress. */
import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { EventEmitter } from "node:events"
import type { IncomingMessage } from "node:http"
import { Duplex } from "node:stream"
import type { WebSocket } from "ws"
import type { Incoming, Outgoing } from "../../../services/ingress/exchange/Exchange.ts"
import { ResponsesSocket } from "../../../services/ingress/socket/ResponsesSocket.ts"
import { BodyWaits } from "../../../services/ingress/body/BodyMemory.ts"
import { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"

const budgetBytes = 1_000_000

interface Sent {
  readonly type: string
  readonly stream_id?: string
  readonly status?: number
  readonly error?: { readonly code: string }
}

/** A socket whose client and operations are played by the test. */
const open = ({ reads = true } = {}) => {
  const bodies = new TenantBudget(budgetBytes)
  const sent: Array<Sent> = []
  const calls: Array<string | number> = []
  const running: Array<{ readonly request: Incoming; readonly response: Outgoing }> = []
  const socket = Object.assign(new EventEmitter(), {
    send: (text: string, done?: () => void) => {
      sent.push(JSON.parse(text) as Sent)
      if (reads) done?.()
    },
    pause: () => calls.push("pause"),
    close: (code: number) => {
      calls.push(code)
      socket.emit("close")
    },
    ping: () => calls.push("ping"),
    terminate: () => calls.push("terminate")
  })
  const connection = new Duplex({ read: () => undefined, write: (_, __, done) => done() })
  const opened = new ResponsesSocket({
    socket: socket as unknown as WebSocket,
    connection,
    request: { headers: {}, socket: {} } as IncomingMessage,
    path: "/v1/responses",
    tenant: "key_1",
    memory: new BodyWaits(bodies, 0),
    now: () => 0,
    take: (request, response) => {
      running.push({ request, response })
      return true
    }
  })
  return {
    calls,
    connection,
    opened,
    running,
    sent,
    socket,
    create: (body: object) =>
      socket.emit(
        "message",
        Buffer.from(JSON.stringify({ type: "response.create", model: "m", input: "a", ...body })),
        false
      ),
    /** Ends the oldest running answer. */
    end: async () => {
      const { response } = running.shift()!
      response.writeHead(200, ["content-type", "text/event-stream"])
      const data = { type: "response.completed", response: { id: "resp_1", output: [{ type: "message" }] } }
      response.end(`event: response.completed\ndata: ${JSON.stringify(data)}\n\n`)
      await new Promise((resolve) => response.once("close", resolve))
    },
    /** Whether so much memory is left: by default, all of what the key may use. */
    isFree: (bytes = budgetBytes / 2) => {
      const isFree = bodies.reserve("key_1", bytes)
      if (isFree) bodies.release("key_1", bytes)
      return isFree
    }
  }
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "setInterval", "clearTimeout", "clearInterval"] }))
afterEach(() => void vi.useRealTimers())

describe("a WebSocket", () => {
  it("has 32 lanes, of which 16 answer at a time", async () => {
    const { create, end, running, sent } = open()
    for (let lane = 0; lane < 33; lane++) create({ stream_id: `${lane}` })
    assert.strictEqual(running.length, 16)
    assert.deepStrictEqual(sent.map(({ error, stream_id }) => [stream_id, error?.code]), [["32", "too_many_streams"]])
    await end()
    assert.strictEqual(running.length, 16)
  })

  it("returns the memory for messages and responses when it closes", async () => {
    const { create, end, isFree, socket } = open()
    create({ stream_id: "a", input: "x".repeat(1_000) })
    await end()
    for (let each = 0; each < 20; each++) create({ stream_id: "a", input: "x".repeat(1_000) })
    assert.isFalse(isFree())
    socket.emit("close")
    assert.isTrue(isFree())
  })

  it("counts the input of a running answer until the answer ends, or from then on as a part of its response", async () => {
    const { create, end, isFree, running, socket } = open()
    const rest = budgetBytes / 2 - 200_000
    create({ input: "x".repeat(200_000) })
    assert.isFalse(isFree(rest))
    assert.isTrue(isFree(rest - 1_000))
    const { response } = running.shift()!
    response.destroy()
    await new Promise((resolve) => response.once("close", resolve))
    assert.isTrue(isFree())
    create({ input: "x".repeat(200_000) })
    await end()
    assert.isFalse(isFree(rest))
    assert.isTrue(isFree(rest - 1_000))
    create({ input: "x".repeat(100_000) })
    socket.emit("close")
    assert.isTrue(isFree())
  })

  it("answers a message with an input that there is no room to keep beside the request, but not the next one", async () => {
    const { create, end, isFree, running } = open()
    create({ input: "x".repeat(budgetBytes / 2 - 1_000) })
    // the memory is left to the request
    assert.isTrue(isFree())
    await end()
    assert.isTrue(isFree())
    create({ input: "again", previous_response_id: "resp_1" })
    const body = JSON.parse(String(running[0]!.request.read())) as object
    assert.deepInclude(body, { previous_response_id: "resp_1", input: [{ role: "user", content: "again" }] })
  })

  it("continues a response with the whole conversation", async () => {
    const { create, end, running } = open()
    create({ input: "one", previous_response_id: "resp_0" })
    await end()
    create({ input: [{ role: "user", content: "two" }], previous_response_id: "resp_1" })
    assert.deepStrictEqual(JSON.parse(String(running[0]!.request.read())), {
      model: "m",
      stream: true,
      previous_response_id: "resp_0",
      input: [{ role: "user", content: "one" }, { type: "message" }, { role: "user", content: "two" }]
    })
  })

  it("refuses a message that the memory does not suffice for", () => {
    const { create, sent } = open()
    create({ stream_id: "a", input: "x".repeat(budgetBytes) })
    assert.deepStrictEqual(sent.map(({ error, status }) => [status, error?.code]), [[429, "queue_full"]])
  })

  it("is closed, read no further and cut if the memory does not suffice for a message that is still coming", () => {
    const { calls, connection } = open()
    connection.emit("data", new Uint8Array(budgetBytes / 2))
    assert.deepStrictEqual(calls, [])
    connection.emit("data", new Uint8Array(1))
    assert.deepStrictEqual(calls, [1013, "pause"])
    vi.advanceTimersByTime(1_000)
    assert.deepStrictEqual(calls, [1013, "pause", "terminate"])
  })

  it("is cut if its client reads none of the errors that it causes", () => {
    const { calls, sent, socket } = open({ reads: false })
    while (calls.length === 0 && sent.length < 100_000) socket.emit("message", Buffer.from("x"), false)
    assert.deepStrictEqual(calls, ["terminate"])
    assert.closeTo(JSON.stringify(sent).length, 1_000_000, 10_000)
  })

  it("may cause any number of errors if its client reads them", () => {
    const { calls, sent, socket } = open()
    for (let each = 0; each < 20_000; each++) socket.emit("message", Buffer.from("x"), false)
    assert.deepStrictEqual([calls, sent.length], [[], 20_000])
  })

  it("says so after 60 minutes, ends its answers and closes", async () => {
    const { calls, create, end, sent, socket } = open()
    create({})
    for (let second = 0; second < 60 * 60; second++) {
      socket.emit("pong")
      vi.advanceTimersByTime(1_000)
    }
    assert.strictEqual(sent.at(-1)?.error?.code, "websocket_connection_limit_reached")
    assert.notInclude(calls, 1001)
    await end()
    assert.strictEqual(calls.at(-1), 1001)
  })

  it("ends its answers when its ingress drains, refuses the messages that wait, and closes", async () => {
    const { calls, create, end, opened, sent } = open()
    for (let each = 0; each < 2; each++) create({ stream_id: "a" })
    opened.drain()
    create({ stream_id: "b" })
    assert.deepStrictEqual(sent.map(({ status, stream_id }) => [stream_id, status]), [["a", 503], ["b", 503]])
    await end()
    assert.deepStrictEqual([sent.at(-1)?.type, calls], ["response.completed", [1001]])
  })

  it("is cut if its client does not answer a ping", () => {
    const { calls, socket } = open()
    vi.advanceTimersByTime(30_000)
    socket.emit("pong")
    vi.advanceTimersByTime(30_000)
    assert.deepStrictEqual(calls, ["ping", "ping"])
    vi.advanceTimersByTime(30_000)
    assert.deepStrictEqual(calls, ["ping", "ping", "terminate"])
  })

  it("reports an answer that breaks off", async () => {
    const { create, running, sent } = open()
    create({ stream_id: "a" })
    const { response } = running[0]!
    response.destroy()
    await new Promise((resolve) => response.once("close", resolve))
    assert.deepStrictEqual(sent.map(({ error, status, type }) => [type, status, error?.code]), [[
      "error",
      502,
      "answer_lost"
    ]])
  })
})
