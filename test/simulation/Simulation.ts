/** Runs one scenario to its end and returns its violations of invariants. */
import { enter } from "./world/Interposition.ts"
import { Layer } from "effect"
import { jobStream, newestVersion, versionsOf } from "../../shared/bus/protocol/Subjects.ts"
import { announcementMs } from "../../shared/bus/protocol/Timings.ts"
import { Performer } from "../../shared/worker/JobLife.ts"
import { AnswerClient } from "./gateway/AnswerClient.ts"
import { Client } from "./gateway/Client.ts"
import { HttpProvider, providerNames } from "./gateway/HttpProvider.ts"
import { formerJobsIn, FormerWorker } from "./gateway/FormerWorker.ts"
import { KeeperProcess } from "./gateway/KeeperProcess.ts"
import { Administrator } from "./gateway/Keys.ts"
import { routedPerformer } from "./gateway/Routing.ts"
import { type Violation, violationsOf } from "./Invariants.ts"
import { Cluster } from "./nats/Cluster.ts"
import { strikeNats } from "./nats/Faults.ts"
import { Network } from "./world/Network.ts"
import { type GatewayProcess, IngressProcess, WorkerProcess } from "./gateway/Processes.ts"
import { Provider } from "./gateway/Provider.ts"
import {
  activeMs,
  countedRestMs,
  endOf,
  type Fault,
  isBucketFault,
  isNatsFault,
  momentMs,
  type Scenario,
  unlimited,
  warmUpMs
} from "./Scenario.ts"
import { TaskClient } from "./gateway/TaskClient.ts"
import { VideoProcess } from "./gateway/VideoProcess.ts"
import { VideoStudio } from "./gateway/VideoStudio.ts"
import { isTouched } from "./Violation.ts"
import { type Machine, World } from "./world/World.ts"

export interface Result {
  readonly scenario: Scenario
  readonly violations: ReadonlyArray<Violation>
  readonly hash: string
  readonly world: World
}

/** A time in which the queue's stream or its consumer had no leader, in milliseconds of the world. */
export interface Outage {
  readonly from: number
  until: number | undefined
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
  /** How many jobs were stored in version 2 of the protocol before the probes. */
  readonly formerJobs: number
  /** How many jobs workers have asked for and not yet received. */
  readonly pulls: number
  /** How many messages the idle gateway has sent in the last seconds of its rest; `undefined` without a rest. */
  readonly restMessages: number | undefined
  /** When NATS itself did not serve the queue. */
  readonly outages: ReadonlyArray<Outage>
  /** Requests after all faults have healed. */
  readonly probes: ReadonlyArray<Client>
  /** Later requests, one after another, after every circuit has had a probe. */
  readonly lastProbes: ReadonlyArray<Client>
  readonly administrator: Administrator
  /** Clients of answers in the background. */
  readonly answers: ReadonlyArray<AnswerClient>
  readonly videos: {
    readonly studio: VideoStudio
    readonly workers: ReadonlyArray<VideoProcess>
    readonly clients: ReadonlyArray<TaskClient>
  }
}

/** How long after the last fault probes start, in milliseconds: requests are answered promptly again by then. */
const healMs = 5_000
/** How long to run after that, in milliseconds: longer than the longest request with its waits, silences and redeliveries. */
const quietMs = 75_000
/** How much longer to run with tasks, in milliseconds: those over a limit are retried later, and the last one must end. */
const deferredMs = 120_000
/** A run ends early if nothing was left for this long, in milliseconds: longer than JetStream waits before a redelivery. */
const calmMs = 10_000
const probeCount = 10
/** How long a rest is, in milliseconds. Links between processes without traffic are forgotten by then; see `BundleSender.ts`. */
const restMs = 66_000
/** How long after `healMs` the last probes start, in milliseconds. Every circuit has had a probe by then, 15 s after the last fault. */
const lastProbesMs = 10_000
/** How long a supervisor takes to replace a process that died by itself. */
const restartMs = 500

/** How many jobs are in the streams, delivered or not. */
const jobsLeft = ({ jetStream }: Cluster): number => {
  let left = 0
  for (const { config: { name }, consumers } of jetStream.streams.values()) {
    if (!name.startsWith("JOBS")) continue
    for (const { unacknowledged, undelivered } of consumers.values()) left += unacknowledged + undelivered
  }
  return left
}

/** How many jobs of chat the pull requests in JetStream ask for. */
const pullsOf = ({ jetStream }: Cluster): number => {
  let asked = 0
  for (const version of versionsOf("chat")) {
    for (const consumer of jetStream.streams.get(jobStream("chat", version))?.consumers.values() ?? []) {
      asked += consumer.asked
    }
  }
  return asked
}

/** Whether NATS would store a job in the queue of the newest version now, and deliver it. */
const servesQueue = ({ jetStream }: Cluster): boolean => {
  const stream = jetStream.streams.get(jobStream("chat", newestVersion))
  const groups = [stream?.group, stream?.consumers.get("default")?.group]
  return groups.every((group) => group?.isDecided === true && group.hasMajority)
}

export const simulate = async (scenario: Scenario): Promise<Result> => {
  const world = new World(scenario.seed)
  const network = new Network(world)
  enter(world, (machine, port, onConnect) => network.connect(machine, port, onConnect))
  const cluster = new Cluster(world, network, { servers: scenario.servers, version: "2.12.1" })
  const provider = new Provider(world)
  const ingresses: Array<IngressProcess> = []
  const hasAnswers = scenario.answers !== undefined
  const addIngress = () => {
    const ingress = new IngressProcess(world, cluster, `ingress-${ingresses.length}`, {
      limitWindowMs: scenario.limits?.windowMs,
      hasTasks: scenario.tasks !== undefined,
      hasAnswers
    })
    ingresses.push(ingress)
    return ingress
  }
  for (let at = 0; at < scenario.ingresses; at++) addIngress()
  const { weather } = scenario
  for (const at of weather === undefined ? [] : providerNames.keys()) {
    new HttpProvider(world, network, at, weather ?? [], provider).start()
  }
  const performer = weather === undefined
    ? (machine: Machine) => Layer.succeed(Performer, provider.performer(machine))
    : () => routedPerformer
  const workers: Array<WorkerProcess> = []
  const addWorker = () => {
    const { slots } = scenario
    const worker = new WorkerProcess(world, cluster, `worker-${workers.length}`, { slots, hasAnswers }, performer)
    workers.push(worker)
    return worker
  }
  for (let at = 0; at < scenario.workers; at++) addWorker()
  for (const process of [...ingresses, ...workers]) process.start()
  const keeper = new KeeperProcess(world, cluster, "console")
  keeper.start()
  const former = scenario.upgradedAt === undefined ? [] : [new FormerWorker(world, cluster, "former-worker")]
  for (const worker of former) {
    worker.start()
    world.after(scenario.upgradedAt ?? 0, undefined, () => {
      if (scenario.seed % 2 === 0) worker.terminate()
      else worker.kill()
    })
  }
  const studio = new VideoStudio(world)
  const videoWorkers: Array<VideoProcess> = []
  const addVideoWorker = (): VideoProcess => {
    const worker = new VideoProcess(world, cluster, `video-${videoWorkers.length}`, studio)
    videoWorkers.push(worker)
    worker.onFailure = () => void world.after(restartMs, undefined, () => addVideoWorker().start())
    return worker
  }
  for (let at = 0; at < (scenario.tasks?.workers ?? 0); at++) addVideoWorker().start()
  studio.onKill = (machine) => {
    videoWorkers.find((worker) => worker.machine === machine)?.kill()
    world.after(restartMs, undefined, () => addVideoWorker().start())
  }
  const administrator = new Administrator(world, cluster)
  if (scenario.limits !== undefined) administrator.start(scenario.limits.keys, scenario.limits.edits)

  const clients: Array<Client> = []
  const readyIngress = () => {
    const ready = ingresses.filter(({ isReady, machine }) => isReady && machine.isAlive)
    return ready.length === 0 ? undefined : world.random.pick(ready)
  }
  const taskClients = (scenario.tasks?.requests ?? []).map((request) => new TaskClient(world, request, readyIngress))
  for (const client of taskClients) world.after(client.request.at, undefined, () => client.start())
  const answers: Array<AnswerClient> = []
  for (const request of scenario.answers ?? []) {
    world.after(request.at, undefined, () => {
      const key = administrator.keys.get(request.tenant)
      if (key === undefined) return
      const client = new AnswerClient(world, request, key, readyIngress)
      answers.push(client)
      client.start()
    })
  }
  const ask = (request: Scenario["requests"][number]) => {
    const ingress = readyIngress()
    const key = administrator.keys.get(request.tenant)
    const client = new Client(world, request, ingress, { isApi: weather !== undefined, key })
    clients.push(client)
    client.start()
    return client
  }
  for (const request of scenario.requests) world.after(request.at, undefined, () => void ask(request))
  for (const fault of scenario.faults) world.after(fault.at, undefined, () => strike(fault))

  const strike = (fault: Fault): void => {
    const { kind, moment, target } = fault
    const all: ReadonlyArray<GatewayProcess> = kind.endsWith("worker")
      ? workers
      : kind.endsWith("ingress")
      ? ingresses
      : kind.endsWith("video")
      ? videoWorkers
      : []
    const alive = all.filter(({ machine }) => machine.isAlive)
    if (isBucketFault(kind)) {
      const { jetStream: { keyValue }, servers } = cluster
      world.trace.tell("fault", `${kind}: ${target} for ${fault.ms.toFixed(0)} ms`)
      if (kind === "gap in watches") return keyValue.loseMessages(1 + target % 3)
      return keyValue.makeStale(servers[target % servers.length]!, fault.ms)
    }
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

  const strikeProcess = (process: GatewayProcess, { kind, ms }: Fault): void => {
    if (!process.machine.isAlive) return
    const links = cluster.servers.map(({ machine }) => network.link(process.machine, machine))
    const replaced = (start: () => GatewayProcess) =>
      void world.after(ms, undefined, () => {
        start().start()
      })
    switch (kind) {
      case "kill worker":
      case "deploy worker":
        if (kind === "kill worker") process.kill()
        else process.terminate()
        return replaced(addWorker)
      case "kill ingress":
      case "deploy ingress":
        if (kind === "kill ingress") process.kill()
        else process.terminate()
        return replaced(addIngress)
      case "kill video":
      case "deploy video":
        if (kind === "kill video") process.kill()
        else process.terminate()
        return replaced(addVideoWorker)
      case "freeze worker":
      case "freeze ingress":
      case "freeze video":
        process.machine.freeze()
        return void world.after(ms, undefined, () => process.machine.thaw(world))
      case "hold worker":
      case "hold ingress":
      case "hold video":
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

  const { upgradedAt } = scenario
  // while clients of NATS reconnect, silence does not count, so ingresses learn of the former worker's end this much later
  const unseenMs = upgradedAt !== undefined && isTouched(scenario, upgradedAt, upgradedAt + announcementMs.expires)
    ? announcementMs.expires
    : 0
  const lastFaultAt = Math.max(warmUpMs + activeMs, ...scenario.faults.map((fault) => endOf(scenario, fault)))
  const healedAt = lastFaultAt + healMs + unseenMs
  const probes: Array<Client> = []
  const lastProbes: Array<Client> = []
  const probe = (number: number) =>
    ask({
      request: 1_000 + number,
      at: world.now,
      isPaid: number % 2 === 0,
      tenant: scenario.limits === undefined ? `key_${1 + number % 3}` : unlimited,
      patienceMs: 20_000,
      bodyBytes: 100,
      chunks: 2,
      everyMs: 10,
      chunkBytes: 64,
      leavesAfterMs: undefined,
      readMs: 0
    })
  const startProbes = (first: number) => {
    for (let at = 0; at < probeCount; at++) probes.push(probe(first + at))
  }
  const outages: Array<Outage> = []
  const watchQueue = () => {
    const last = outages.at(-1)
    const isOut = last !== undefined && last.until === undefined
    if (servesQueue(cluster)) { if (isOut) last.until = world.now }
    else if (!isOut) outages.push({ from: world.now, until: undefined })
    world.after(10, undefined, watchQueue)
  }
  world.after(warmUpMs, undefined, watchQueue)
  let formerJobs = 0
  world.after(healedAt, undefined, () => {
    formerJobs = formerJobsIn(cluster)
    startProbes(0)
  })
  const rests = scenario.faults.length <= 1
  let restMessages: number | undefined
  if (rests) {
    let before = 0
    world.after(healedAt + restMs - countedRestMs, undefined, () => void (before = cluster.published))
    world.after(healedAt + restMs, undefined, () => {
      restMessages = cluster.published - before
      startProbes(2 * probeCount)
    })
  }
  let calmSince: number | undefined
  /** The counts of the last second. The highest one matters, because an expired pull request is repeated only a little later. */
  const pulls: Array<number> = []
  const countPulls = () => {
    pulls.push(pullsOf(cluster))
    if (pulls.length > 10) pulls.shift()
    world.after(100, undefined, countPulls)
  }
  const isCalm = () =>
    clients.every(({ outcome }) => outcome !== undefined) && provider.open === 0 && jobsLeft(cluster) === 0 &&
    taskClients.every(({ hasEnded, id }) => id === undefined || hasEnded)
  const watch = () => {
    calmSince = isCalm() ? calmSince ?? world.now : undefined
    world.after(1_000, undefined, watch)
  }
  world.after(healedAt + 1_000, undefined, countPulls)
  // leases and records of keys settle later than jobs
  const usesBuckets = scenario.limits !== undefined || scenario.tasks !== undefined || weather !== undefined
  if (!usesBuckets && !rests) world.after(healedAt + 1_000, undefined, watch)
  for (let at = 0; at < (weather === undefined ? 0 : probeCount); at++) {
    world.after(healedAt + lastProbesMs + at * 300, undefined, () => lastProbes.push(probe(probeCount + at)))
  }
  await world.run(
    healedAt + quietMs + (hasAnswers ? deferredMs : 0),
    () => calmSince !== undefined && world.now - calmSince >= calmMs
  )
  const ended: Ended = {
    world,
    scenario,
    cluster,
    provider,
    clients,
    ingresses,
    workers,
    formerJobs,
    pulls: Math.max(...pulls),
    restMessages,
    outages,
    probes,
    lastProbes,
    administrator,
    answers,
    videos: { studio, workers: videoWorkers, clients: taskClients }
  }
  const violations = violationsOf(ended)
  for (const { machine } of [...ingresses, ...workers, keeper, ...former, ...videoWorkers, administrator]) {
    machine.kill()
  }
  return { scenario, violations, hash: world.trace.hash, world }
}
