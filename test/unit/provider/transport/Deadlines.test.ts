/** Each deadline of an exchange ends it, with its name, and none ends it early. Timers run on virtual time, sockets do not. */
import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import { Effect, Result } from "effect"
import { type AddressInfo, createServer, type Socket } from "node:net"
import { ProviderTimeout } from "../../../../shared/contract/JobError.ts"
import * as Endpoint from "../../../../shared/provider/transport/Endpoint.ts"
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

/** The limits of a call to a provider without settings. */
const byDefault = (streams: boolean, isBackground = false): Partial<UpstreamRequest> => {
  const provider = { protocol: "openai" as const }
  const endpoint = { name: "slow", model: "m", provider }
  const own = isBackground ? Endpoint.inBackground(endpoint) : endpoint
  return { ...Endpoint.timeoutsOf(own, { streams }), timedOut: (phase) => Endpoint.timedOut(own, phase, { streams }) }
}

describe("by default", () => {
  const secondMs = 1_000
  const minuteMs = 60 * secondMs
  const hourMs = 60 * minuteMs

  // a reasoning model may think for many minutes, with or without headers before
  it.live.each<readonly [name: string, limits: Partial<UpstreamRequest>, thinksMs: number, early: string]>([
    ["a JSON answer may take 29 minutes", byDefault(false), 29 * minuteMs, ""],
    ["a JSON answer with early headers may take 29 minutes", byDefault(false), 29 * minuteMs, head],
    ["a stream may be silent for 299 s before its first byte", byDefault(true), 299 * secondMs, ""],
    ["a stream may be silent for 299 s", byDefault(true), 299 * secondMs, head],
    ["an answer in the background may take twenty hours", byDefault(false, true), 20 * hourMs, ""]
  ])("%s", ([_name, limits, thinksMs, early]) =>
    Effect.gen(function*() {
      const think = (socket: Socket) => {
        pass(thinksMs)
        socket.write(early === "" ? `${head}word` : "word")
      }
      let provider: Socket | undefined
      const received = yield* call({
        limits,
        onRequest: (socket) => {
          provider = socket
          if (early === "") think(socket)
          else socket.write(early)
        },
        onHead: () => provider !== undefined && early !== "" ? think(provider) : undefined
      })
      assert.deepStrictEqual(received, word)
    }))

  it.live.each<readonly [name: string, limits: Partial<UpstreamRequest>, ms: number, ending: string]>([
    ["a JSON answer", byDefault(false), 31 * minuteMs, "1800000 ms, the default of timeouts.totalMs"],
    ["the first byte of a stream", byDefault(true), 302 * secondMs, "300000 ms, the default of timeouts.firstByteMs"],
    ["an answer in the background", byDefault(false, true), 25 * hourMs, "86400000 ms, the default of timeouts.totalMs"]
  ])("%s is given up, with an error that names the setting", ([_name, limits, ms, ending]) =>
    Effect.gen(function*() {
      const { error } = yield* call({ limits, onRequest: () => pass(ms) })
      assert.match(error?.message ?? "", new RegExp(`: the limit is ${ending}$`))
    }))
})
