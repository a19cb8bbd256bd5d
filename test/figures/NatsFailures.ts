/**
 * What clients notice when servers of a NATS cluster fail, beside the time in which NATS itself does not work: 40 requests/s and
 * 30 open streams over two ingresses and two workers, with production's accounts.
 */
import { Effect, type Scope, SemVer } from "effect"
import type { NatsService } from "../../shared/bus/provision/Access.ts"
import { jobStream, newestOf } from "../../shared/bus/protocol/Subjects.ts"
import { isAllowedDuringFailure } from "../fixture/client/ChatClient.ts"
import { askChat, type Entry, Load } from "../fixture/client/Load.ts"
import { randomFrom } from "../fixture/general/Random.ts"
import { Gateway } from "../fixture/gateway/Gateway.ts"
import type { NatsCluster } from "../fixture/nats/NatsCluster.ts"
import type { NatsServer } from "../fixture/nats/NatsServer.ts"
import { newNatsServer, oldest, versionOf } from "../fixture/nats/NewNatsServer.ts"
import { SecureNats } from "../fixture/nats/SecureNats.ts"
import { NatsProbe } from "./NatsProbe.ts"
import { longest, outside, pauses, type Span } from "./Pauses.ts"
import { atMost, count, ms, type Row } from "./Row.ts"

const replicas = 3
const stream = jobStream("chat", newestOf("chat"))

/** Every fifth request is a stream of 3 s, so that 30 are open; half of each kind is paid. */
const load = { perSecond: 50, clients: 2_000, patienceMs: 60_000 }
const models = ["free-chat", "paid-chat"]
const streamModels = ["free-stream", "paid-stream"]
const ask = (index: number, id: string) => {
  const isStream = index % 5 === 4
  const [free = "", paid = ""] = isStream ? streamModels : models
  return askChat(index % 2 === 0 ? free : paid, id, { stream: isStream })
}

/** A shorter pause between answers says nothing. */
const leastMs = 250

/** How many answers after an event show that it has passed, and how long to wait for them and for NATS, in milliseconds. */
const passed = { answers: 300, withinMs: 45_000 }

interface Stage {
  /** The version of nats-server. */
  readonly version: SemVer.SemVer
  readonly cluster: NatsCluster
  readonly gateway: Gateway<NatsCluster>
  readonly load: Load
  readonly probe: NatsProbe
}

const makeStage: Effect.Effect<Stage, never, Scope.Scope> = Effect.gen(function*() {
  const program = yield* Effect.promise(newNatsServer)
  const version = yield* Effect.promise(() => versionOf(program))
  if (version === undefined) return yield* Effect.die(new Error(`${program} cannot be run`))
  const nats = yield* SecureNats.makeCluster({ program, words: ["--no_advertise"] })
  const cluster = nats.server
  yield* Effect.promise(() => nats.provision(replicas))
  const gateway = yield* Gateway.makeOn(cluster, {
    ingresses: 2,
    workers: 2,
    wired: true,
    models: `
  free-stream: { workload: chat, targets: [{ provider: free }] }
  paid-stream: { workload: chat, targets: [{ provider: paid }] }
`,
    environment: { NATS_REPLICAS: String(replicas) },
    environmentOf: (service) => nats.identityOf(service as NatsService)
  })
  gateway.provider.behave({ kind: "paced", chunks: 5, everyMs: 10 })
  for (const model of streamModels) gateway.provider.behave({ kind: "paced", chunks: 30, everyMs: 100 }, { model })
  const probe = yield* Effect.acquireRelease(
    Effect.promise(() => NatsProbe.start(nats)),
    (probe) => Effect.promise(() => probe.stop())
  )
  yield* Effect.promise(() => cluster.untilCurrent())
  return { version, cluster, gateway, load: new Load(gateway, { ...load, ask }), probe }
})

/** What happened from just before an event until all had recovered from it. */
interface Observation {
  readonly during: Span
  /** Requests that ended meanwhile. */
  readonly entries: ReadonlyArray<Entry>
  readonly failed: ReadonlyArray<Entry>
  /** Pauses of NATS itself, and of answers, without streams. */
  readonly nats: ReadonlyArray<Span>
  readonly answers: ReadonlyArray<Span>
  /** The longest time from the end of a pause of NATS to the next answer, without further pauses of NATS, in milliseconds. */
  readonly firstMs: number
}

const isStream = ({ model }: Entry): boolean => streamModels.includes(model)

const observe = ({ load, probe }: Stage, during: Span): Observation => {
  const endOf = ({ beganAt, tookMs }: Entry) => beganAt + tookMs
  const entries = load.entries.filter((entry) => endOf(entry) > during.from && endOf(entry) <= during.until)
  const failed = entries.filter(({ outcome }) => outcome.kind !== "whole")
  const ends = load.entries.filter((entry) => entry.outcome.kind === "whole" && !isStream(entry))
    .map(endOf)
  const nats = probe.pauses(during)
  const works = nats.map(({ until }) => until).filter((at) => at < during.until)
  const untilNext = (from: number) => ({ from, until: Math.min(...ends.filter((end) => end > from)) })
  const firstMs = Math.max(0, ...works.map((at) => outside(untilNext(at), nats)))
  return { during, entries, failed, nats, answers: pauses(ends, during, leastMs), firstMs }
}

const versionRow = ({ version }: Stage): Row => [
  "nats-server",
  SemVer.format(version),
  `≥ ${SemVer.format(oldest)}`,
  SemVer.isGreaterThanOrEqualTo(version, oldest)
]

const pauseRow = (name: string, { answers, nats }: Observation, mostMs: number): Row =>
  atMost(`${name}: longest pause of answers`, longest(answers), mostMs, ms, ms(longest(nats)))

const firstRow = (name: string, { firstMs }: Observation): Row =>
  atMost(`${name}: first answer after NATS works again`, firstMs, 1_000)

const failedRow = (name: string, { entries, failed }: Observation): Row =>
  atMost(`${name}: failed requests, of ${entries.length}`, failed.length, 0, count)

/** The errors, with what else drives a fix: paid or not, streamed or not, whether the provider was called, and after how long. */
const errorRows = ({ failed }: Observation, { load }: Stage): ReadonlyArray<Row> => {
  const kinds = Map.groupBy(failed, ({ id, model, outcome }) => {
    const { kind, ...details } = outcome
    const error = kind === "refused" ? [outcome.status, outcome.code] : Object.values(details)
    return `${model}, ${load.calls.get(id) ?? 0} calls: ${[kind, ...error].join(" ")}`
  })
  return [...kinds].toSorted().map(([kind, entries]): Row => {
    const seconds = entries.map(({ tookMs }) => tookMs / 1_000)
    const after = `after ${Math.min(...seconds).toFixed(1)} to ${Math.max(...seconds).toFixed(1)} s`
    return [`    ${kind} ${after}`, count(entries.length), "", true]
  })
}

const untilCurrent = async ({ cluster }: Stage): Promise<void> => {
  await cluster.untilCurrent().catch(() => undefined)
}

const pass = (forMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, Math.max(0, forMs)))

/** Waits until clients get answers again, and requests from before have ended. Gives up in time, because that is a result, too. */
const untilPassed = async ({ load }: Stage): Promise<void> => {
  await load.untilWhole(passed.answers, performance.now(), passed.withinMs).catch(() => undefined)
  await load.untilEnded()
}

/** Prepares an event, and returns it. */
type Event = (stage: Stage) => Promise<() => Promise<unknown>>

const servicesOf = ({ gateway: { ingresses, workers } }: Stage) => [...ingresses, ...workers]

/** An event of one server, to which the first ingress and the first worker are connected, and the others are not. */
const on = (
  choose: (stage: Stage) => Promise<NatsServer>,
  event: (server: NatsServer) => Promise<unknown>
): Event =>
async (stage) => {
  const { cluster: { nodes }, gateway: { ingresses, workers } } = stage
  const server = await choose(stage)
  const indices = [...nodes.keys()]
  const others = indices.filter((index) => nodes[index] !== server)
  for (const process of servicesOf(stage)) {
    const isFirst = process === ingresses[0] || process === workers[0]
    process.cut(isFirst ? others : indices.filter((index) => !others.includes(index)))
  }
  await untilPassed(stage)
  for (const process of servicesOf(stage)) process.mend()
  return () => event(server)
}

/** Lets events happen under load, one after the other, and observes each. */
const observeAll = (
  events: Readonly<Record<string, Event>>,
  rowsOf: (name: string, seen: Observation, stage: Stage) => ReadonlyArray<Row>
): Effect.Effect<ReadonlyArray<Row>> =>
  Effect.scoped(Effect.gen(function*() {
    const stage = yield* makeStage
    const spans = yield* Effect.promise(async () => {
      const spans: Record<string, Span> = {}
      await untilPassed(stage)
      for (const [name, prepare] of Object.entries(events)) {
        const event = await prepare(stage)
        const from = performance.now()
        await event()
        await untilPassed(stage)
        spans[name] = { from, until: performance.now() }
      }
      await stage.load.stop()
      return spans
    })
    const rows = Object.entries(spans).flatMap(([name, during]) => {
      const seen = observe(stage, during)
      return [...rowsOf(name, seen, stage), ...errorRows(seen, stage)]
    })
    return [versionRow(stage), ...rows]
  }))

/** Restarts every server; the next follows when the cluster is healthy and every replica is up to date. */
export const natsRestart = observeAll({
  "NATS restarted, one server at a time": async (stage) => async () => {
    for (const node of stage.cluster.nodes) {
      await node.restart()
      await untilCurrent(stage)
    }
  },
  "NATS restarted, each server through its lame duck mode": async (stage) => async () => {
    for (const node of stage.cluster.nodes) {
      await node.retire()
      await node.restart()
      await untilCurrent(stage)
    }
  }
}, (name, seen) => {
  const streams = seen.entries.filter(isStream)
  return [
    pauseRow(name, seen, 2_000),
    firstRow(name, seen),
    atMost(`${name}: broken streams, of ${streams.length}`, seen.failed.filter(isStream).length, 0, count),
    failedRow(name, seen)
  ]
})

const leader = ({ cluster }: Stage): Promise<NatsServer> => cluster.leaderOf(stream)

/** A server that leads neither the stream nor its consumer. */
const follower = async ({ cluster }: Stage): Promise<NatsServer> => {
  const leaders = [await cluster.leaderOf(stream), await cluster.leaderOf(stream, "default")]
  return cluster.nodes.find((node) => !leaders.includes(node))!
}

/** Kills the leader of the stream, restarts it, and kills a follower. */
export const natsLoss = observeAll({
  "leader of the stream killed": on(leader, (server) => server.kill()),
  "the killed leader restarted": async (stage) => async () => {
    for (const node of stage.cluster.nodes) if (node.pid === undefined) await node.restart()
    await untilCurrent(stage)
  },
  "a follower killed": on(follower, (server) => server.kill())
}, (name, seen) => {
  const unavailable = seen.failed.filter(({ outcome }) => outcome.kind === "refused" && outcome.status === 503)
  return [
    pauseRow(name, seen, longest(seen.nats) + 1_000),
    firstRow(name, seen),
    atMost(`${name}: answers with 503, of ${seen.entries.length}`, unavailable.length, 0, count),
    failedRow(name, seen)
  ]
})

const freeze = async (server: NatsServer): Promise<void> => {
  server.freeze()
  await pass(5_000)
  server.thaw()
}

export const natsFreeze = observeAll({
  "leader of the stream frozen for 5 s": on(leader, freeze),
  "a follower frozen for 5 s": on(follower, freeze)
}, (name, seen) => [failedRow(name, seen), pauseRow(name, seen, longest(seen.nats) + 2_000), firstRow(name, seen)])

/** Each begins a fault of the server with this index, and returns what ends it. */
const strikes: ReadonlyArray<(stage: Stage, index: number) => Promise<() => unknown>> = [
  async ({ cluster: { nodes } }, index) => {
    await nodes[index]?.kill()
    return () => nodes[index]?.restart()
  },
  async ({ cluster: { nodes } }, index) => {
    nodes[index]?.freeze()
    return () => nodes[index]?.thaw()
  },
  // its clients, not the other servers
  async (stage, index) => {
    for (const process of servicesOf(stage)) process.cut([index])
    return () => servicesOf(stage).forEach((process) => process.mend())
  }
]

const struck = { times: 26, everyMs: 90_000 / 26, leastMs: 200, mostMs: 2_500 }

/** Faults of random servers, one after the other, in an order that the seed determines. */
export const natsStrikes = (seed: number) =>
  observeAll({
    [`${struck.times} strikes, seed ${seed}`]: async (stage) => async () => {
      const random = randomFrom(seed)
      const from = performance.now()
      for (let index = 0; index < struck.times; index++) {
        const lastsMs = struck.leastMs + random() * (struck.mostMs - struck.leastMs)
        const spareMs = random() * (struck.everyMs - lastsMs)
        const strike = strikes[Math.floor(random() * strikes.length)]!
        const server = Math.floor(random() * stage.cluster.nodes.length)
        await pass(from + index * struck.everyMs + spareMs - performance.now())
        const heal = await strike(stage, server)
        await pass(lastsMs)
        await heal()
      }
    }
  }, (name, seen, { load }) => {
    const lost = seen.failed.filter(({ outcome }) => !isAllowedDuringFailure(outcome))
    const twice = ["paid-chat", "paid-stream"].flatMap((model) => load.calledTwice(model))
    const beyond = seen.answers.map((span) => outside(span, seen.nats))
    return [
      atMost(`${name}: lost, of ${seen.entries.length}`, lost.length, 0, count),
      atMost(`${name}: paid twice`, twice.length, 0, count),
      atMost(`${name}: longest pause beyond NATS's`, Math.max(0, ...beyond), 2_000),
      [`${name}: longest pause`, ms(longest(seen.answers)), "", true, ms(longest(seen.nats))],
      firstRow(name, seen)
    ]
  })
