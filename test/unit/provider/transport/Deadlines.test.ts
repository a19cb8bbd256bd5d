/** Each deadline of an exchange ends it, with its name, and none ends it early. Timers run on virtual time, sockets do not. */
import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { Effect, Result } from "effect"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { ProviderTimeout } from "../../../../shared/contract/JobError.ts"
import { type ExchangeControl, Upstream, type UpstreamRequest } from "../../../../shared/provider/transport/Upstream.ts"

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] }))
afterEach(() => void vi.useRealTimers())

const pass = (ms: number) => vi.advanceTimersByTime(ms)

/** A server of one connection. */
const serve = (onRequest: (socket: Socket) => void) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly origin: string; readonly close: () => void }>((resume) => {
      let connected: Socket | undefined
      const server = createServer((socket) => {
        connected = socket
        socket.on("error", () => {}).once("data", () => onRequest(socket))
      })
      const close = () => {
        connected?.destroy()
        server.close()
      }
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        resume(Effect.succeed({ origin: `http://127.0.0.1:${port}`, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

interface Script {
  readonly limits?: Partial<UpstreamRequest>
  /** The server has received the request. */
  readonly onRequest: (socket: Socket) => void
  readonly onHead?: () => void
  /** A read has arrived; `text` is all so far. */
  readonly onData?: (text: string, control: ExchangeControl) => void
}

/** What comes of a call. */
const call = Effect.fnUntraced(function*({ limits, onData, onHead, onRequest }: Script) {
  const { origin } = yield* serve(onRequest)
  const upstream = yield* Upstream
  const heads: Array<number> = []
  let text = ""
  const request = { provider: "slow", headers: [], firstByteMs: 60_000, idleMs: 60_000, totalMs: 60_000, ...limits }
  const result = yield* Effect.result(
    upstream.exchange({ ...request, address: { origin, path: "/" } }, (control) => ({
      onHead: (status) => {
        heads.push(status)
        onHead?.()
      },
      onData: (bytes) => {
        text += Buffer.from(bytes).toString()
        onData?.(text, control)
      }
    }))
  )
  return { error: Result.isFailure(result) ? result.failure : undefined, heads, text }
}, Effect.provide(Upstream.layer))

const head = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
const word = { error: undefined, heads: [200], text: "word" }

const timeout = (phase: ProviderTimeout["phase"]) => new ProviderTimeout({ provider: "slow", phase })

describe("an exchange ends", () => {
  it.live("without a first byte in time", () =>
    Effect.gen(function*() {
      const { error, heads } = yield* call({ limits: { firstByteMs: 1_000 }, onRequest: () => pass(1_200) })
      assert.deepStrictEqual([error, heads], [timeout("first byte"), []])
    }))

  it.live.each(
    [
      ["idle", { idleMs: 1_000 }],
      ["total", { totalMs: 1_000 }],
      ["first token", { firstTokenMs: 1_000 }]
    ] as const
  )("when it has been too long until or since a read: %s", ([phase, limits]) =>
    Effect.gen(function*() {
      const onRequest = (socket: Socket) => void socket.write(`${head}wo`)
      const { error, text } = yield* call({ limits, onRequest, onData: () => pass(1_200) })
      assert.deepStrictEqual([error, text], [timeout(phase), "wo"])
    }))
})

describe("an exchange goes on", () => {
  it.live("as long as the provider is heard in time", () =>
    Effect.gen(function*() {
      let provider: Socket | undefined
      const received = yield* call({
        limits: { firstByteMs: 1_000, idleMs: 1_000 },
        onRequest: (socket) => {
          provider = socket
          pass(900)
          socket.write(head)
        },
        onHead: () => {
          pass(900)
          provider?.write("w")
        },
        onData: (text) => {
          pass(900)
          provider?.write("word"[text.length] ?? "")
        }
      })
      assert.deepStrictEqual(received, word)
    }))

  it.live("while its reader pauses it", () =>
    Effect.gen(function*() {
      let provider: Socket | undefined
      const received = yield* call({
        limits: { idleMs: 1_000 },
        onRequest: (socket) => {
          provider = socket
          socket.write(`${head}wo`)
        },
        onData: (text, control) => {
          if (text !== "wo") return
          control.pause()
          pass(5_000)
          control.resume()
          provider?.write("rd")
        }
      })
      assert.deepStrictEqual(received, word)
    }))

  it.live("once content has arrived, whatever the limit for the first", () =>
    Effect.gen(function*() {
      let provider: Socket | undefined
      const received = yield* call({
        limits: { firstTokenMs: 1_000 },
        onRequest: (socket) => {
          provider = socket
          socket.write(`${head}wo`)
        },
        onData: (text, control) => {
          control.noteContent()
          pass(5_000)
          if (text === "wo") provider?.write("rd")
        }
      })
      assert.deepStrictEqual(received, word)
    }))

  it.live("after an informational response", () =>
    Effect.gen(function*() {
      const onRequest = (socket: Socket) => void socket.write(`HTTP/1.1 103 Early Hints\r\n\r\n${head}word`)
      assert.deepStrictEqual(yield* call({ onRequest }), word)
    }))
})
