/** Servers of NATS that know each other, and the order of what they tell each other. */
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
  /** When the last message between two servers arrives. */
  readonly #arrivals = new Map<string, number>()

  constructor(world: World, network: Network, { servers, version }: ClusterOptions) {
    this.world = world
    this.network = network
    this.version = version
    this.servers = Array.from({ length: servers }, (_, at) => new Server(this, `nats-${at + 1}`, firstPort + at))
    this.jetStream = new JetStream(this)
  }

  get url(): string {
    return this.servers.map(({ port }) => `nats://127.0.0.1:${port}`).join(",")
  }

  others(server: Server): ReadonlyArray<Server> {
    return this.servers.filter((other) => other !== server)
  }

  /** Runs at the other server after the way there, in the order of the calls. */
  inOrder(from: Server, to: Server, run: () => void): void {
    const { world } = this
    const way = `${from.name} ${to.name}`
    const at = Math.max(this.#arrivals.get(way) ?? 0, world.now + world.random.between(0.1, 1))
    this.#arrivals.set(way, at)
    const { machine } = to
    world.after(at - world.now, undefined, () => machine === to.machine ? world.after(0, machine, run) : undefined)
  }
}
