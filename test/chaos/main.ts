/**
 * `npm run chaos`: injects random faults into a gateway on a cluster of three NATS servers, under load. Exits with an error if
 * a request was lost or paid twice, or a process exited by itself.
 *
 * CHAOS_MINUTES (default 2), CHAOS_SEED (default: random), CHAOS_CLIENTS (16), CHAOS_BATCH (the number of requests of a batch
 * that runs beside the others, which may take longer than CHAOS_MINUTES; default: no batch), CHAOS_FAULTS (names of faults,
 * separated by commas; default: all).
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Console, Effect, Random, Schema } from "effect"
import { bundleServices } from "../fixture/gateway/Bundles.ts"
import { Gateway } from "../fixture/gateway/Gateway.ts"
import { NatsCluster } from "../fixture/nats/NatsCluster.ts"
import { newNatsServer } from "../fixture/nats/NewNatsServer.ts"
import { chaos } from "./Chaos.ts"
import { type FaultName, faultNames } from "./Faults.ts"
import { broken, text } from "./Report.ts"

class Broken extends Schema.TaggedError<Broken>()("Broken", { what: Schema.String }) {
  override get message() {
    return this.what
  }
}

const isFault = (name: string): name is FaultName => faultNames.some((known) => known === name)

const settings = Config.all({
  minutes: Config.Number("CHAOS_MINUTES").pipe(Config.withDefault(2)),
  seed: Config.Int("CHAOS_SEED").pipe(Config.option),
  clients: Config.Int("CHAOS_CLIENTS").pipe(Config.withDefault(16)),
  batchLines: Config.Int("CHAOS_BATCH").pipe(Config.withDefault(0)),
  among: Config.String("CHAOS_FAULTS").pipe(Config.withDefault(faultNames.join(",")))
})

const run = Effect.gen(function*() {
  yield* Effect.promise(bundleServices)
  const { batchLines, clients, minutes, among, seed: given } = yield* settings
  const seed = given._tag === "Some" ? given.value : yield* Random.nextIntBetween(1, 1_000_000)
  const names = among.split(",").map((name) => name.trim())
  const unknown = names.find((name) => !isFault(name))
  if (unknown !== undefined) {
    return yield* new Broken({ what: `CHAOS_FAULTS: unknown fault "${unknown}". Choose from ${faultNames.join(", ")}` })
  }
  yield* Console.log(`seed ${seed}, ${minutes} minutes`)
  const program = yield* Effect.promise(newNatsServer)
  const cluster = yield* NatsCluster.make({ program, words: ["--no_advertise"] })
  const gateway = yield* Gateway.makeOn(cluster, {
    ingresses: 2,
    workers: 3,
    ...(batchLines === 0 ? {} : { services: ["batches", "batches"] }),
    wired: true,
    environment: { NATS_REPLICAS: "3", DRAIN_DELAY_MS: "500", WORKER_TASK_SLOTS: "16" }
  })
  const log = (line: string) => process.stdout.write(`${line}\n`)
  const report = yield* Effect.promise(() =>
    chaos({ gateway, servers: cluster.nodes }, {
      seed,
      forMs: minutes * 60_000,
      clients,
      batchLines,
      everyMs: 3_000,
      among: names.filter(isFault),
      log
    })
  )
  yield* Console.log(text(report))
  const what = broken(report)
  if (what !== undefined) return yield* new Broken({ what })
}).pipe(Effect.scoped)

NodeRuntime.runMain(run)
