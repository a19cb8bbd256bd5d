/** Runs a script against the model of NATS. The seed chooses among the possible behaviours. */
import { connect } from "@nats-io/transport-node"
import { Cluster } from "../nats/Cluster.ts"
import { strikeNats } from "../nats/Faults.ts"
import { enter } from "../world/Interposition.ts"
import { Network } from "../world/Network.ts"
import { Machine, World } from "../world/World.ts"
import { type Client, clusterSize, type Script, type Stage, type Strike } from "./Script.ts"

/** The time limit of a script, in milliseconds of the world. */
const longestMs = 300_000

const kinds = { kill: "kill nats", freeze: "freeze nats" } as const

class ModelStage implements Stage {
  readonly name = "S"
  readonly #world: World
  readonly #network: Network
  readonly #cluster: Cluster
  /** The script's own machine, which nothing strikes. */
  readonly #machine: Machine
  #clients = 0
  #heal: (() => void) | undefined

  constructor(world: World, network: Network, cluster: Cluster, machine: Machine) {
    this.#world = world
    this.#network = network
    this.#cluster = cluster
    this.#machine = machine
  }

  connect(server = 0): Promise<Client> {
    const { port } = this.#cluster.servers[server]!
    const machine = new Machine(`client-${this.#clients++}`)
    return new Promise((resolve, reject) => {
      this.#world.on(machine, () => {
        const options = { servers: [`nats://127.0.0.1:${port}`], maxReconnectAttempts: -1, reconnectTimeWait: 100 }
        connect({ ...options, ignoreClusterUpdates: true }).then((connection) =>
          resolve({
            connection,
            cut: () => {
              this.#network.breakAll(machine)
              // it does not connect again
              this.#hold(machine)
            },
            hold: () => this.#hold(machine)
          }), reject)
      })
    })
  }

  #hold(machine: Machine): void {
    for (const server of this.#cluster.servers) this.#network.link(machine, server.machine).isHeld = true
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#world.after(ms, this.#machine, resolve))
  }

  rest(ms: number): Promise<void> {
    return this.sleep(ms)
  }

  async together(): Promise<void> {}

  async strike(kind: Strike, server: number, meanwhile = () => {}): Promise<void> {
    const { random } = this.#world
    meanwhile()
    await this.sleep(random.between(0, 3))
    // heals when the script says so
    this.#heal = strikeNats(this.#cluster, { kind: kinds[kind], target: server, ms: undefined })
    await this.sleep(0)
  }

  async heal(): Promise<void> {
    this.#heal?.()
    await this.sleep(0)
  }
}

/** The outcome of a script with this seed. */
export const runModel = async ({ isClustered, name, run }: Script, seed: number): Promise<string> => {
  const world = new World(seed)
  const network = new Network(world)
  enter(world, (machine, port, onConnect) => network.connect(machine, port, onConnect))
  const cluster = new Cluster(world, network, { servers: isClustered ? clusterSize : 1, version: "2.12.1" })
  cluster.keepsMemory = false
  const machine = new Machine("script")
  let outcome: string | undefined
  world.on(machine, () =>
    void run(new ModelStage(world, network, cluster, machine)).then(
      (seen) => void (outcome = seen),
      (error) => void (outcome = `fails: ${String(error)}`)
    ))
  await world.run(longestMs, () => outcome !== undefined)
  if (outcome === undefined) throw new Error(`"${name}" does not end with seed ${seed}`)
  return outcome
}
