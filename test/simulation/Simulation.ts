/** Runs one scenario to its end and returns what it violated. */
import { enter } from "./world/Interposition.ts"
import { Client } from "./gateway/Client.ts"
import { type Violation, violationsOf } from "./Invariants.ts"
import { Cluster } from "./nats/Cluster.ts"
import { Network } from "./world/Network.ts"
import { IngressProcess, WorkerProcess } from "./gateway/Processes.ts"
import { Provider } from "./gateway/Provider.ts"
import { activeMs, endOf, type Fault, type Scenario, warmUpMs } from "./Scenario.ts"
import { World } from "./world/World.ts"

export interface Result {
  readonly scenario: Scenario
  readonly violations: ReadonlyArray<Violation>
  readonly hash: string
  readonly world: World
}

/** Everything that invariants look at. */
export interface Ended {
  readonly world: World
  readonly scenario: Scenario
  readonly cluster: Cluster
  readonly provider: Provider
  readonly clients: ReadonlyArray<Client>
  readonly ingresses: ReadonlyArray<IngressProcess>
  readonly workers: ReadonlyArray<WorkerProcess>
  /** The last wave, after all faults have healed. */
  readonly probes: ReadonlyArray<Client>
}

/** Five seconds after the last fault everything flows again: probes start then. */
const healMs = 5_000
/** Longer than the longest request with its patience, silences and redeliveries. */
const quietMs = 75_000
const probeCount = 10

export const simulate = async (scenario: Scenario): Promise<Result> => {
  const world = new World(scenario.seed)
  const network = new Network(world)
  enter(world, (machine, port, onConnect) => network.connect(machine, port, onConnect))
  const cluster = new Cluster(world, network, { servers: scenario.servers, version: "2.12.1" })
  const provider = new Provider(world)
  const ingresses = Array.from(
    { length: scenario.ingresses },
    (_, at) => new IngressProcess(world, cluster, `ingress-${at}`)
  )
  const workers = Array.from(
    { length: scenario.workers },
    (_, at) => new WorkerProcess(world, cluster, `worker-${at}`, scenario.slots, provider)
  )
  for (const process of [...ingresses, ...workers]) process.start()

  const clients: Array<Client> = []
  const ask = (request: Scenario["requests"][number]) => {
    const ready = ingresses.filter(({ isReady, machine }) => isReady && machine.isAlive)
    const client = new Client(world, request, ready.length === 0 ? undefined : world.random.pick(ready))
    clients.push(client)
    client.start()
    return client
  }
  for (const request of scenario.requests) world.after(request.at, undefined, () => void ask(request))
  for (const fault of scenario.faults) world.after(fault.at, undefined, () => strike(fault))

  const strike = (fault: Fault): void => {
    world.trace.tell("fault", `${fault.kind} ${fault.target}`)
    const running = (all: ReadonlyArray<IngressProcess | WorkerProcess>) => all.filter(({ machine }) => machine.isAlive)
    const alive = fault.kind.endsWith("worker") ? running(workers) : running(ingresses)
    const process = alive[fault.target % Math.max(1, alive.length)]
    const server = cluster.servers[fault.target % cluster.servers.length]!
    const links = process === undefined
      ? []
      : cluster.servers.map(({ machine }) => network.link(process.machine, machine))
    switch (fault.kind) {
      case "kill worker":
      case "deploy worker":
        if (process === undefined) return
        if (fault.kind === "kill worker") process.kill()
        else process.terminate()
        return void world.after(fault.backAfterMs, undefined, () => {
          const next = new WorkerProcess(world, cluster, `worker-${workers.length}`, scenario.slots, provider)
          workers.push(next)
          next.start()
        })
      case "kill ingress":
        if (process === undefined) return
        process.kill()
        return void world.after(fault.backAfterMs, undefined, () => {
          const next = new IngressProcess(world, cluster, `ingress-${ingresses.length}`)
          ingresses.push(next)
          next.start()
        })
      case "freeze worker":
      case "freeze ingress":
        if (process === undefined) return
        process.machine.freeze()
        return void world.after(fault.forMs, undefined, () => process.machine.thaw(world))
      case "freeze nats":
        if (!server.isUp) return
        server.machine.freeze()
        return void world.after(fault.forMs, undefined, () => server.machine.thaw(world))
      case "kill nats":
        if (!server.machine.isAlive) return
        server.kill()
        cluster.jetStream.serverLost(server)
        return void world.after(fault.backAfterMs, undefined, () => {
          server.restart()
          cluster.jetStream.serverBack(server)
          world.trace.tell(server.name, "is back")
        })
      case "hold worker":
      case "hold ingress":
        for (const link of links) link.isHeld = true
        return void world.after(fault.forMs, undefined, () => {
          for (const link of links) link.release()
        })
      case "cut worker":
      case "cut ingress":
        if (process !== undefined) network.breakAll(process.machine)
        return
      case "slow worker":
        for (const link of links) link.slowMs = 50
        return void world.after(fault.forMs, undefined, () => {
          for (const link of links) link.slowMs = 0
        })
      case "clock of worker":
      case "clock of ingress":
        if (process !== undefined) process.machine.skewMs += fault.byMs
    }
  }

  const healedAt = Math.max(warmUpMs + activeMs, ...scenario.faults.map(endOf)) + healMs
  const probes: Array<Client> = []
  world.after(healedAt, undefined, () => {
    for (let at = 0; at < probeCount; at++) {
      probes.push(ask({
        request: 1_000 + at,
        at: healedAt,
        isPaid: at % 2 === 0,
        tenant: `key_${1 + at % 3}`,
        patienceMs: 20_000,
        bodyBytes: 100,
        chunks: 2,
        everyMs: 10,
        chunkBytes: 64,
        leavesAfterMs: undefined,
        readMs: 0
      }))
    }
  })
  await world.run(healedAt + quietMs)
  const ended: Ended = { world, scenario, cluster, provider, clients, ingresses, workers, probes }
  const violations = violationsOf(ended)
  for (const process of [...ingresses, ...workers]) process.machine.kill()
  return { scenario, violations, hash: world.trace.hash, world }
}
