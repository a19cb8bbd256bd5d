/**
 * Runs a script against real servers, many times at once: each run has streams and connections of its own, and a strike waits
 * until every run is ready for it.
 */
import { readdirSync, readFileSync } from "node:fs"
import { connect } from "@nats-io/transport-node"
import { Cable } from "../../fixture/nats/Cable.ts"
import type { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { type Client, type Script, Skipped, type Stage, type Strike } from "./Script.ts"

/** Runs fail if they take longer, in milliseconds. */
const longestMs = 120_000

/** A strike comes this long after the last run has begun what it does meanwhile, at most, in milliseconds. */
const mostLaterMs = 3

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

interface Wish {
  readonly kind: Strike | "heal"
  readonly server: number
  readonly meanwhile: () => void
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** The servers, and what all runs together do to them. */
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

  wish(kind: Strike | "heal", server: number, meanwhile: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wishes.push({ kind, server, meanwhile, resolve, reject })
      void this.#act()
    })
  }

  /** Ends what strikes still do. */
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
    else {
      await Promise.all(chosen.map(async ({ meanwhile }) => {
        await sleep(10 * Math.random())
        meanwhile()
      }))
      await sleep(mostLaterMs * Math.random())
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

/** Whether all threads of a process have stopped; after the signal they run on for a moment. */
const isStopped = (pid: number): boolean =>
  readdirSync(`/proc/${pid}/task`).every((thread) =>
    /^.*\) [Tt] /.test(readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8"))
  )

class RealStage implements Stage {
  readonly name: string
  readonly #theatre: Theatre
  readonly #open: Array<() => Promise<void>> = []

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

  readonly sleep = sleep

  strike(kind: Strike, server: number, meanwhile: () => void = () => {}): Promise<void> {
    return this.#theatre.wish(kind, server, meanwhile)
  }

  heal(): Promise<void> {
    return this.#theatre.wish("heal", 0, () => {})
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#open.map((close) => close()))
  }
}

let stages = 0

/** The outcomes of so many runs at once, each with how often it was seen; runs that were skipped have none. */
export const runReal = async (
  servers: ReadonlyArray<NatsServer>,
  { name, run }: Script,
  times: number
): Promise<ReadonlyMap<string, number>> => {
  const theatre = new Theatre(servers, times)
  const outcomes = new Map<string, number>()
  await Promise.all(Array.from({ length: times }, async () => {
    const stage = new RealStage(theatre, `S${stages++}`)
    try {
      const late = sleep(longestMs).then(() => "does not end")
      const outcome = await Promise.race([run(stage), late])
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
    } catch (error) {
      if (!(error instanceof Skipped)) throw new Error(`"${name}" fails`, { cause: error })
    } finally {
      theatre.ends()
      await stage.close()
    }
  }))
  await theatre.close()
  return outcomes
}
