/**
 * `npm run figures`: measures behaviour under failure and load against its targets. Takes some minutes; run it only on an
 * otherwise idle machine. Exits with an error if a target is missed.
 *
 * FIGURES (prefixes of the figures' names, separated by commas; default: all), STRIKE_ROUNDS (1) and STRIKE_SEED (1) of
 * natsStrikes, NATS_SERVER (the program for clusters; see NewNatsServer.ts).
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Console, Effect, Logger, Schema } from "effect"
import { bundleServices } from "../fixture/gateway/Bundles.ts"
import { Gateway, type GatewayOptions, otherWorkloads } from "../fixture/gateway/Gateway.ts"
import { chaos } from "../chaos/Chaos.ts"
import { batchLatency } from "./BatchLatency.ts"
import { fairness } from "./Fairness.ts"
import * as LongStreams from "./LongStreams.ts"
import * as ManyStreams from "./ManyStreams.ts"
import * as NatsFailures from "./NatsFailures.ts"
import * as Overload from "./Overload.ts"
import * as RollingDeploy from "./RollingDeploy.ts"
import { atMost, count, ms, type Row } from "./Row.ts"
import { slowWorker } from "./SlowWorker.ts"
import { timeToReplace } from "./WorkerLoss.ts"

class Missed extends Schema.TaggedError<Missed>()("Missed", { names: Schema.Array(Schema.String) }) {
  override get message() {
    return `targets missed: ${this.names.join("; ")}`
  }
}

const on = <A>(options: GatewayOptions, use: (gateway: Gateway) => Promise<A>): Effect.Effect<A> =>
  Effect.scoped(Effect.flatMap(Gateway.make(options), (gateway) => Effect.promise(() => use(gateway))))

const log = () => undefined

// with one slot, the frozen worker has no open pull request that would receive the job again
const workerLoss = on({ environment: { WORKER_SLOTS: "1" } }, async (gateway) => [
  atMost("killed worker replaced after", await timeToReplace(gateway, (worker) => worker.kill()), 1_000),
  atMost("frozen worker replaced after", await timeToReplace(gateway, (worker) => worker.freeze()), 3_000)
])

const randomDeaths = on(
  { ingresses: 2, workers: 3, wired: true },
  async (gateway): Promise<ReadonlyArray<Row>> => {
    const among = ["kill -9 a worker"] as const
    const playing = { seed: 7, clients: 32, forMs: 0, requests: 2_000, everyMs: 1_500, among, log }
    const { doubled, faults, lost, requests, unsent } = await chaos({ gateway, servers: [gateway.nats] }, playing)
    const deaths = faults["kill -9 a worker"] ?? 0
    const during = `${requests} jobs, ${deaths} workers killed`
    return [
      atMost(`${during}: jobs lost`, lost.length, 0, count),
      // it is unknown whether the dead worker made a call that ingress had agreed to
      atMost(`${during}: failed between consent and call`, unsent.length, deaths, count),
      atMost(`${during}: paid calls made twice`, doubled.length, 0, count)
    ]
  }
)

const services = otherWorkloads

const deploy = on(
  { ingresses: 2, workers: 2, services, environment: RollingDeploy.environment },
  async (gateway): Promise<ReadonlyArray<Row>> => {
    const options = { services, clients: 64, perSecond: 200, log }
    const { failed, perSecond, requests } = await RollingDeploy.rollingDeploy(gateway, options)
    const name = `deploy of every process at ${perSecond.toFixed(0)} of 200 requests/s: failed, of ${requests}`
    return [atMost(name, failed.length, 0, count)]
  }
)

const quietTenants = Effect.map(fairness, ({ busy, p95 }): ReadonlyArray<Row> => [
  atMost("p95 wait of quiet tenants beside 900 queued jobs", p95, 200),
  [
    "busy share of the slots outside the reserve meanwhile",
    `${(100 * busy).toFixed(1)} %`,
    "≥ 95 %",
    busy >= 0.95
  ]
])

const longStreams = on(
  { ingresses: 2, environment: LongStreams.environment },
  async (gateway): Promise<ReadonlyArray<Row>> => {
    const { asked, failed, most, open, p95 } = await LongStreams.longStreams(gateway, 45_000)
    return [
      atMost("p95 wait of a quiet tenant beside 500 streams of 30 s, 64 slots", p95, 500),
      ["its longest wait", ms(most), "", true],
      atMost(`its failed requests, of ${asked}`, failed, 0, count),
      ["slots held by the streams at the end", `${open}`, "≥ 56", open >= 56]
    ]
  }
)

const oneSlower = Effect.map(slowWorker(6_000), ({ even, oneSlower }): ReadonlyArray<Row> => [
  ["p95 wait at 80 % load, four even workers", ms(even), "", true],
  [
    "the same with one worker four times slower",
    ms(oneSlower),
    `≤ ${ms(1.5 * even)} (1.5 times)`,
    oneSlower <= 1.5 * even
  ]
])

const abort = on(
  { environment: ManyStreams.environment(4_096) },
  async (gateway) => [
    atMost(
      "4,096 clients disconnect: last provider call closed after",
      await ManyStreams.abortAll(gateway, 4_096),
      2_000
    )
  ]
)

const streams = on(
  { environment: ManyStreams.environment(5_000) },
  async (gateway): Promise<ReadonlyArray<Row>> => {
    const { ingressKb, whole, workerKb } = await ManyStreams.openStreams(gateway, 5_000)
    return [
      ["5,000 open streams: complete", `${whole}`, "5000", whole === 5_000],
      atMost("memory of each in the worker", workerKb, 50, (kb) => `${kb.toFixed(1)} KB`),
      ["memory of each in the ingress", `${ingressKb.toFixed(1)} KB`, "", true]
    ]
  }
)

const overload = on(
  { environment: Overload.environment },
  async (gateway): Promise<ReadonlyArray<Row>> => {
    const { best, grownMb, overloaded, rejectedWithinMs } = await Overload.overload(gateway, 10_000)
    const share = overloaded / best
    return [
      ["throughput at three times the load, of the best", `${(100 * share).toFixed(0)} %`, "≥ 90 %", share >= 0.9],
      atMost("p95 time of a rejection", rejectedWithinMs, 100),
      ["memory growth of the ingress meanwhile", `${grownMb.toFixed(0)} MB`, "", true]
    ]
  }
)

const batch = on(
  { services: ["batches"] },
  async (gateway): Promise<ReadonlyArray<Row>> => {
    const { before, completed, during } = await batchLatency(gateway)
    return [
      ["p95 time of interactive requests, 50/s", ms(before), "", true],
      atMost(`the same beside a batch, of which ${completed} requests are done`, during, 1.1 * before)
    ]
  }
)

const natsStrikes = Effect.gen(function*() {
  const seed = yield* Config.Int("STRIKE_SEED").pipe(Config.withDefault(1))
  const rounds = yield* Config.Int("STRIKE_ROUNDS").pipe(Config.withDefault(1))
  const rows = yield* Effect.forEach(
    Array.from({ length: rounds }),
    (_, index) => NatsFailures.natsStrikes(seed + index)
  )
  return rows.flat()
}).pipe(Effect.orDie)

const figures: Readonly<Record<string, Effect.Effect<ReadonlyArray<Row>>>> = {
  workerLoss,
  randomDeaths,
  deploy,
  quietTenants: Effect.scoped(quietTenants),
  longStreams,
  oneSlower,
  natsRestart: NatsFailures.natsRestart,
  natsLoss: NatsFailures.natsLoss,
  natsFreeze: NatsFailures.natsFreeze,
  natsStrikes,
  abort,
  streams,
  overload,
  batch
}

const run = Effect.gen(function*() {
  yield* Effect.promise(bundleServices)
  const wanted = (yield* Config.String("FIGURES").pipe(Config.withDefault(""))).split(",").map((name) => name.trim())
  const missed: Array<string> = []
  for (const [key, measure] of Object.entries(figures)) {
    if (!wanted.some((name) => key.startsWith(name))) continue
    for (const [name, measured, target, holds, nats] of yield* measure) {
      const part = nats === undefined ? "" : `   (NATS itself: ${nats})`
      yield* Console.log(`${holds ? "  " : "✗ "}${name.padEnd(76)} ${measured.padStart(10)}   ${target}${part}`)
      if (!holds) missed.push(name)
    }
  }
  if (missed.length > 0) return yield* new Missed({ names: missed })
}).pipe(Effect.provide(Logger.layer([])))

NodeRuntime.runMain(run)
