/** A cluster of simulated NATS servers, with ordered messages between them. */
import type { Network } from "../world/Network.ts"
import type { World } from "../world/World.ts"
import { JetStream } from "./JetStream.ts"
import { Server } from "./Server.ts"

export interface ClusterOptions {
  readonly servers: number
  readonly version: string
}

const firstPort = 14_222

export class Cluster {
  readonly world: World
  readonly network: Network
  readonly version: string
  readonly servers: ReadonlyArray<Server>
  readonly jetStream: JetStream
  /** How many messages clients have published. */
  published = 0
  /** How many of them have usage events. */
  pages = 0
  /** Added to the delay between two servers, in milliseconds. */
  slowMs = 0
  /** Whether streams in memory lose nothing while servers remain. If not, an empty server may be elected. */
  keepsMemory = true
  /** When the last message between two servers arrives. */
  readonly #arrivals = new Map<string, number>()
  /** Messages that wait for the routes of isolated servers, in order. */
  #waiting: Array<{ readonly from: Server; readonly to: Server; readonly run: () => void }> = []

  constructor(world: World, network: Network, { servers, version }: ClusterOptions) {
    this.world = world
    this.network = network
    this.version = version
    this.servers = Array.from({ length: servers }, (_, at) => new Server(this, `nats-${at}`, firstPort + at))
    this.jetStream = new JetStream(this)
  }

  get url(): string {
    return this.servers.map(({ port }) => `nats://127.0.0.1:${port}`).join(",")
  }

  others(server: Server): ReadonlyArray<Server> {
    return this.servers.filter((other) => other !== server)
  }

  /** Whether a majority of servers reach each other. */
  get hasMajority(): boolean {
    return 2 * this.servers.filter(({ isReachable }) => isReachable).length > this.servers.length
  }

  /** Runs `run` at the other server after the delay of the route, in the order of the calls. Drops it if the route breaks. */
  inOrder(from: Server, to: Server, run: () => void): void {
    const route = from.routeTo(to)
    if (route === undefined) return
    if (from.isIsolated || to.isIsolated) return void this.#waiting.push({ from, to, run })
    const { world } = this
    const way = `${from.name} ${to.name}`
    const at = Math.max(this.#arrivals.get(way) ?? 0, world.now + world.random.between(0.1, 1) + this.slowMs)
    this.#arrivals.set(way, at)
    const { machine } = to
    world.after(at - world.now, undefined, () => {
      if (machine === to.machine && from.routeTo(to) === route) world.after(0, machine, run)
    })
  }

  /** Isolates a server from the others, but not from its clients. If the routes break, all servers notice. */
  isolate(server: Server, breaksRoutes: boolean): void {
    server.isIsolated = true
    if (breaksRoutes) { for (const other of this.others(server)) server.part(other) }
    this.jetStream.review()
  }

  /** Ends the isolation of a server, and sends the waiting messages. */
  rejoin(server: Server): void {
    server.isIsolated = false
    const waiting = this.#waiting
    this.#waiting = []
    for (const { from, run, to } of waiting) this.inOrder(from, to, run)
    for (const other of this.others(server)) if (server.routeTo(other) === undefined) server.meet(other)
    this.jetStream.review()
  }
}
