/**
 * A simulated provider of chat over HTTP/1.1, in the dialect of OpenAI: streams answers, and in bad weather answers with errors,
 * says nothing, or cuts and resets connections.
 */
import type { Connection, Network } from "../world/Network.ts"
import { Machine, type World } from "../world/World.ts"
import { type Call, chunkOf, type Order, type Provider } from "./Provider.ts"

export const weatherKinds = ["500", "429", "stall", "cut", "reset", "down"] as const

/** How a provider limits its calls: to a number in each window of two seconds, or to a bucket of ten that fills evenly. */
export const limiterKinds = ["window", "bucket"] as const

const windowMs = 2_000
const bucketSize = 10

/** What a provider does to a share of its requests for a while. */
export interface Weather {
  readonly provider: number
  readonly kind: typeof weatherKinds[number] | typeof limiterKinds[number]
  /** How many calls a limiter accepts per second. */
  readonly perSecond?: number
  /** In milliseconds of the world. */
  readonly from: number
  readonly until: number
  readonly share: number
}

export const providerNames = ["alpha", "beta"] as const
const firstPort = 18_001
export const portOf = (provider: number): number => firstPort + provider

/** The text of a request's only message. */
interface Asked {
  readonly model: string
  readonly messages: ReadonlyArray<{ readonly content: string }>
}

const thinkMs = 10

const answerOf = (status: string, body: object, ...headers: ReadonlyArray<string>): Buffer => {
  const text = JSON.stringify(body)
  const lines = [`HTTP/1.1 ${status}`, "content-type: application/json", `content-length: ${text.length}`, ...headers]
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${text}`)
}

const head = Buffer.from(
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)

const event = (data: string): Buffer => {
  const text = `data: ${data}\n\n`
  return Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`)
}

const pieceOf = (call: Call, order: Order, at: number): Buffer =>
  event(JSON.stringify({
    id: `call-${call.id}`,
    object: "chat.completion.chunk",
    model: call.isPaid ? "paid" : "free",
    choices: [{ index: 0, delta: { content: chunkOf(call, order, at).toString("latin1") }, finish_reason: null }]
  }))

const lastOf = (call: Call): ReadonlyArray<Buffer> => [
  event(JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })),
  event(JSON.stringify({
    choices: [],
    usage: { prompt_tokens: 1, completion_tokens: call.made, total_tokens: call.made + 1 }
  })),
  event("[DONE]"),
  Buffer.from("0\r\n\r\n")
]

export class HttpProvider {
  readonly #world: World
  readonly #network: Network
  readonly #number: number
  readonly #weather: ReadonlyArray<Weather>
  /** The units of a limiter that are left, and when they were counted. */
  #limited = { left: bucketSize, at: 0 }
  /** Keeps the calls of all providers. */
  readonly #calls: Provider
  #machine: Machine

  constructor(world: World, network: Network, number: number, weather: ReadonlyArray<Weather>, calls: Provider) {
    this.#world = world
    this.#network = network
    this.#number = number
    this.#weather = weather.filter(({ provider }) => provider === number)
    this.#calls = calls
    this.#machine = this.#listen()
  }

  /** Starts the bad weather. */
  start(): void {
    const world = this.#world
    for (const { from, kind, until } of this.#weather) {
      if (kind !== "down") continue
      world.after(from, undefined, () => {
        world.trace.tell(this.#name, "is down")
        this.#machine.kill()
        this.#network.breakAll(this.#machine)
      })
      world.after(until, undefined, () => {
        if (!this.#machine.isAlive) this.#machine = this.#listen()
      })
    }
  }

  get #name(): string {
    return providerNames[this.#number] ?? ""
  }

  #listen(): Machine {
    const machine = new Machine(this.#name)
    this.#network.listen(portOf(this.#number), { machine, accept: (connection) => this.#accept(machine, connection) })
    return machine
  }

  #accept(machine: Machine, connection: Connection): void {
    let waiting = Buffer.alloc(0)
    let call: Call | undefined
    connection.onData = (bytes) => {
      waiting = Buffer.concat([waiting, bytes])
      for (;;) {
        const end = waiting.indexOf("\r\n\r\n")
        if (end < 0) return
        const size = Number(/content-length: *(\d+)/i.exec(waiting.toString("latin1", 0, end))?.[1] ?? 0)
        const from = end + 4
        if (waiting.length < from + size) return
        const body = JSON.parse(waiting.toString("utf8", from, from + size)) as Asked
        waiting = waiting.subarray(from + size)
        const order = JSON.parse(body.messages[0]?.content ?? "{}") as Order
        call = this.#calls.begin(connection.client, order.request, body.model === "paid", this.#name)
        this.#answer(machine, connection, call, order)
      }
    }
    connection.onClose = (byClient) => {
      if (call === undefined) return
      this.#calls.end(call, "aborted")
      if (!byClient) call.wasLost = call.hasArrived !== true
    }
    machine.onDeath.push(() => {
      if (call === undefined) return
      this.#calls.end(call, "failed", "down")
      call.wasLost = call.hasArrived !== true
    })
  }

  /** Takes a unit of a limiter. Returns the time until one is free, if none is, in milliseconds. */
  #limit({ kind, perSecond = 1 }: Weather, now: number): number | undefined {
    const { at, left } = this.#limited
    const isNewWindow = Math.floor(now / windowMs) > Math.floor(at / windowMs)
    const full = perSecond * windowMs / 1_000
    const most = kind === "bucket"
      ? Math.min(bucketSize, left + perSecond * (now - at) / 1_000)
      : isNewWindow
      ? full
      : left
    this.#limited = { left: most >= 1 ? most - 1 : most, at: now }
    if (most >= 1) return undefined
    return kind === "bucket" ? (1 - most) * 1_000 / perSecond : windowMs - now % windowMs
  }

  #answer(machine: Machine, connection: Connection, call: Call, order: Order): void {
    const world = this.#world
    const fail = (how: string) => this.#calls.end(call, "failed", how)
    const weather = this.#weather.find(({ from, kind, share, until }) =>
      kind !== "down" && from <= world.now && world.now < until && world.random.chance(share)
    )
    // before or after the first chunks
    const cutAfter = weather?.kind === "cut" ? world.random.integer(0, Math.min(3, order.chunks - 1)) : undefined
    world.after(thinkMs, machine, () => {
      if (call.outcome !== "open") return
      switch (weather?.kind) {
        case "stall":
          return
        case "500":
          connection.send(answerOf("500 Internal Server Error", { error: { message: "broken" } }))
          return fail("500")
        case "429":
          return refuse(300)
        case "window":
        case "bucket": {
          const freeInMs = this.#limit(weather, world.now)
          if (freeInMs !== undefined) return refuse(freeInMs)
          connection.send(head)
          return next(0)
        }
        case "reset":
          fail("reset")
          return connection.close()
        default:
          connection.send(head)
          return next(0)
      }
    })
    const refuse = (retryAfterMs: number): void => {
      const header = `retry-after-ms: ${Math.ceil(retryAfterMs)}`
      connection.send(answerOf("429 Too Many Requests", { error: { message: "slow" } }, header))
      fail("429")
    }
    const next = (at: number): void => {
      if (at === cutAfter) {
        fail("cut")
        return connection.end()
      }
      if (at === order.chunks) {
        for (const piece of lastOf(call)) connection.send(piece)
        return this.#calls.end(call, "complete")
      }
      world.after(order.everyMs, machine, () => {
        if (call.outcome !== "open") return
        call.made++
        connection.send(pieceOf(call, order, at), () => void (call.hasArrived = true))
        next(at + 1)
      })
    }
  }
}
