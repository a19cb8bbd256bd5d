/** Runs one scenario to its end and returns what it violated. */
import { enter } from "./world/Interposition.ts"
import { Client } from "./gateway/Client.ts"
import { type Violation, violationsOf } from "./Invariants.ts"
import { Cluster } from "./nats/Cluster.ts"
import { strikeNats } from "./nats/Faults.ts"
import { Network } from "./world/Network.ts"
import { IngressProcess, WorkerProcess } from "./gateway/Processes.ts"
import { Provider } from "./gateway/Provider.ts"
import { activeMs, endOf, type Fault, isNatsFault, momentMs, type Scenario, warmUpMs } from "./Scenario.ts"
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
/** Nothing more happens if nothing was left for this long: more than JetStream waits before it delivers a job again. */
const calmMs = 10_000
const probeCount = 10

/** How many jobs are in the streams, delivered or not. */
const jobsLeft = ({ jetStream }: Cluster): number => {
  let left = 0
  for (const { config: { name }, consumers } of jetStream.streams.values()) {
    if (!name.startsWith("JOBS")) continue
    for (const { unacknowledged, undelivered } of consumers.values()) left += unacknowledged + undelivered
  }
  return left
}

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
    const { kind, moment, target } = fault
    const all: ReadonlyArray<IngressProcess | WorkerProcess> = kind.endsWith("worker") ? workers : ingresses
    const alive = all.filter(({ machine }) => machine.isAlive)
    if (isNatsFault(kind)) {
      world.trace.tell("fault", `${kind}: ${target} for ${fault.ms.toFixed(0)} ms`)
      return void strikeNats(cluster, { ...fault, kind })
    }
    const process = alive[target % Math.max(1, alive.length)]
    if (process === undefined) return
    const act = () => {
      world.trace.tell("fault", `${kind}: ${process.machine.name} for ${fault.ms.toFixed(0)} ms`)
      strikeProcess(process, fault)
    }
    if (moment === undefined) return act()
    const { machine } = process
    const onWrite = (bytes: Uint8Array) => {
      if (!Buffer.from(bytes).toString("latin1").includes(moment.text)) return
      machine.onWrite = undefined
      if (moment.isBefore) act()
      else world.after(0, undefined, act)
    }
    machine.onWrite = onWrite
    world.after(momentMs, undefined, () => {
      if (machine.onWrite === onWrite) machine.onWrite = undefined
    })
  }

  const strikeProcess = (process: IngressProcess | WorkerProcess, { kind, ms }: Fault): void => {
    if (!process.machine.isAlive) return
    const links = cluster.servers.map(({ machine }) => network.link(process.machine, machine))
    const replaced = (start: () => IngressProcess | WorkerProcess) =>
      void world.after(ms, undefined, () => {
        start().start()
      })
    switch (kind) {
      case "kill worker":
      case "deploy worker":
        if (kind === "kill worker") process.kill()
        else process.terminate()
        return replaced(() => {
          const next = new WorkerProcess(world, cluster, `worker-${workers.length}`, scenario.slots, provider)
          workers.push(next)
          return next
        })
      case "kill ingress":
        process.kill()
        return replaced(() => {
          const next = new IngressProcess(world, cluster, `ingress-${ingresses.length}`)
          ingresses.push(next)
          return next
        })
      case "freeze worker":
      case "freeze ingress":
        process.machine.freeze()
        return void world.after(ms, undefined, () => process.machine.thaw(world))
      case "hold worker":
      case "hold ingress":
        for (const link of links) link.isHeld = true
        return void world.after(ms, undefined, () => {
          for (const link of links) link.release()
        })
      case "cut worker":
      case "cut ingress":
        return network.breakAll(process.machine)
      case "slow worker":
        for (const link of links) link.slowMs = 50
        return void world.after(ms, undefined, () => {
          for (const link of links) link.slowMs = 0
        })
      default:
        process.machine.skewMs += ms
    }
  }

  const healedAt = Math.max(warmUpMs + activeMs, ...scenario.faults.map((fault) => endOf(scenario, fault))) + healMs
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
  let calmSince: number | undefined
  const isCalm = () =>
    clients.every(({ outcome }) => outcome !== undefined) && provider.open === 0 && jobsLeft(cluster) === 0
  const watch = () => {
    calmSince = isCalm() ? calmSince ?? world.now : undefined
    world.after(1_000, undefined, watch)
  }
  world.after(healedAt + 1_000, undefined, watch)
  await world.run(healedAt + quietMs, () => calmSince !== undefined && world.now - calmSince >= calmMs)
  const ended: Ended = { world, scenario, cluster, provider, clients, ingresses, workers, probes }
  const violations = violationsOf(ended)
  for (const process of [...ingresses, ...workers]) process.machine.kill()
  return { scenario, violations, hash: world.trace.hash, world }
}
