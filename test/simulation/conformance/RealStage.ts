/**
 * Runs a script against real servers, many times concurrently. Each run has its own streams and connections. A strike, such as the
 * kill of a server, waits until every run is ready for it.
 */
import { readdirSync, readFileSync } from "node:fs"
import { connect } from "@nats-io/transport-node"
import { Cable } from "../../fixture/nats/Cable.ts"
import type { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { type Client, type Script, Skipped, type Stage, type Strike } from "./Script.ts"

/** The time limit of a run, in milliseconds. */
const longestMs = 120_000

/** Maximum delay of a strike after the last run has begun its `meanwhile`, in milliseconds. */
const mostLaterMs = 3

/** If this process was held up for longer than this during a run, in milliseconds, the run says nothing about the servers. */
const mostLateMs = 200
const lookEveryMs = 20

/** When this process was last held up. */
let heldUpAt = 0

/** How many turns of Node's loop it takes to read what has arrived: bytes pass through the cable and the client. */
const turnsToRead = 5

const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

interface Wish {
  readonly kind: Strike | "heal" | "together"
  readonly server: number
  readonly meanwhile: () => void
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** The servers, and the strikes that all runs share. */
class Theatre {
  readonly servers: ReadonlyArray<NatsServer>
  #running: number
  #wishes: Array<Wish> = []
  #struck: { readonly kind: Strike; readonly server: NatsServer } | undefined

  constructor(servers: ReadonlyArray<NatsServer>, runs: number) {
    this.servers = servers
    this.#running = runs
  }

  ends(): void {
    this.#running--
    void this.#act()
  }

  wish(kind: Wish["kind"], server: number, meanwhile: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wishes.push({ kind, server, meanwhile, resolve, reject })
      void this.#act()
    })
  }

  /** Ends the effects of strikes. */
  async close(): Promise<void> {
    await this.#heal()
  }

  async #act(): Promise<void> {
    if (this.#wishes.length === 0 || this.#wishes.length < this.#running) return
    const wishes = this.#wishes
    this.#wishes = []
    const groups = Map.groupBy(wishes, ({ kind, server }) => `${kind} ${server}`)
    const [chosen = [], ...others] = [...groups.values()].toSorted((a, b) => b.length - a.length)
    for (const { reject } of others.flat()) reject(new Skipped("another server is struck"))
    const [first] = chosen
    if (first === undefined) return
    if (first.kind === "heal") await this.#heal()
    else if (first.kind !== "together") {
      await Promise.all(chosen.map(async ({ meanwhile }) => {
        await sleep(10 * Math.random())
        meanwhile()
      }))
      if (Math.random() < 0.5) await sleep(mostLaterMs * Math.random())
      await this.#strike(first.kind, this.servers[first.server]!)
    }
    for (const { resolve } of chosen) resolve()
  }

  async #strike(kind: Strike, server: NatsServer): Promise<void> {
    this.#struck = { kind, server }
    if (kind === "kill") return void await server.kill()
    server.freeze()
    while (server.pid !== undefined && !isStopped(server.pid)) await sleep(1)
  }

  async #heal(): Promise<void> {
    const struck = this.#struck
    this.#struck = undefined
    if (struck?.kind === "freeze") struck.server.thaw()
    else await struck?.server.restart()
  }
}

/** Whether all threads of a process have stopped. They run on briefly after the signal. */
const isStopped = (pid: number): boolean =>
  readdirSync(`/proc/${pid}/task`).every((thread) =>
    /^.*\) [Tt] /.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8"))
  )

class RealStage implements Stage {
  readonly name: string
  readonly #theatre: Theatre
  readonly #open: Array<() => Promise<void>> = []
  /** Until when delays of this process do not matter. */
  #soundAt = performance.now()

  constructor(theatre: Theatre, name: string) {
    this.#theatre = theatre
    this.name = name
  }

  async connect(server = 0): Promise<Client> {
    const cable = await Cable.start(this.#theatre.servers[server]!.url)
    const connection = await connect({
      servers: [cable.url],
      maxReconnectAttempts: -1,
      reconnectTimeWait: 100,
      ignoreClusterUpdates: true
    })
    this.#open.push(async () => {
      cable.remove()
      await connection.close()
    })
    return { connection, cut: () => cable.cut(), hold: () => cable.hold() }
  }

  async sleep(ms: number): Promise<void> {
    await sleep(ms)
    // what arrived in time counts, even if this process reads it late
    for (let at = 0; at < turnsToRead; at++) await turn()
    this.requireSound()
  }

  /** Ends the run without an outcome if this process was held up when it mattered. */
  requireSound(): void {
    if (heldUpAt > this.#soundAt) throw new Skipped("this process was held up")
  }

  async rest(ms: number): Promise<void> {
    await sleep(ms)
    this.#soundAt = performance.now()
  }

  together(): Promise<void> {
    return this.#wish("together", 0, () => {})
  }

  async #wish(...wish: Parameters<Theatre["wish"]>): Promise<void> {
    await this.#theatre.wish(...wish)
    this.#soundAt = performance.now()
  }

  strike(kind: Strike, server: number, meanwhile: () => void = () => {}): Promise<void> {
    return this.#wish(kind, server, meanwhile)
  }

  heal(): Promise<void> {
    return this.#wish("heal", 0, () => {})
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#open.map((close) => close()))
  }
}

let stages = 0

/** The outcomes of concurrent runs, each with the number of runs that had it. Skipped runs have none. */
export const runReal = async (
  servers: ReadonlyArray<NatsServer>,
  { name, run }: Script,
  times: number
): Promise<ReadonlyMap<string, number>> => {
  const theatre = new Theatre(servers, times)
  const outcomes = new Map<string, number>()
  let lookedAt = performance.now()
  const looks = setInterval(() => {
    const now = performance.now()
    if (now - lookedAt > lookEveryMs + mostLateMs) heldUpAt = now
    lookedAt = now
  }, lookEveryMs)
  await Promise.all(Array.from({ length: times }, async () => {
    const stage = new RealStage(theatre, `S${stages++}`)
    let timer: NodeJS.Timeout | undefined
    try {
      const late = new Promise<string>((resolve) => void (timer = setTimeout(resolve, longestMs, "does not end")))
      const outcome = await Promise.race([run(stage), late])
      stage.requireSound()
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    } catch (error) {
      if (!(error instanceof Skipped)) throw new Error(`"${name}" fails`, { cause: error })
    } finally {
      clearTimeout(timer)
      theatre.ends()
      await stage.close()
    }
  }))
  clearInterval(looks)
  await theatre.close()
  return outcomes
}
