/**
 * `npm run billing`: injects faults while clients use every operation, on a cluster of three NATS servers. Afterwards, the providers'
 * bills must equal usage and the spending of the keys. Exits with an error on an unexplained difference, and writes its section of
 * `test/proof.md`.
 *
 * BILLING_MINUTES (default 5), BILLING_SEED (default: random), BILLING_CLIENTS (16), BILLING_BATCH (the number of requests of the
 * batch, default 1,000).
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Console, Effect, Random, Schema } from "effect"
import { bundleServices } from "../../fixture/gateway/Bundles.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { NatsCluster } from "../../fixture/nats/NatsCluster.ts"
import { newNatsServer } from "../../fixture/nats/NewNatsServer.ts"
import { writeSection } from "../Page.ts"
import { billing, gatewayOptions } from "./Billing.ts"
import { lines, section } from "./Report.ts"

class Wrong extends Schema.TaggedError<Wrong>()("Wrong", { what: Schema.Array(Schema.String) }) {
  override get message() {
    return `${this.what.length} unexplained differences:\n${this.what.slice(0, 20).join("\n")}`
  }
}

const settings = Config.all({
  minutes: Config.Number("BILLING_MINUTES").pipe(Config.withDefault(5)),
  seed: Config.Int("BILLING_SEED").pipe(Config.option),
  clients: Config.Int("BILLING_CLIENTS").pipe(Config.withDefault(16)),
  batchLines: Config.Int("BILLING_BATCH").pipe(Config.withDefault(1_000))
})

const run = Effect.gen(function*() {
  yield* Effect.promise(bundleServices)
  const { batchLines, clients, minutes, seed: given } = yield* settings
  const seed = given._tag === "Some" ? given.value : yield* Random.nextIntBetween(1, 1_000_000)
  yield* Console.log(`seed ${seed}, ${minutes} minutes`)
  const program = yield* Effect.promise(newNatsServer)
  const cluster = yield* NatsCluster.make({ program, words: ["--no_advertise"] })
  const gateway = yield* Gateway.makeOn(cluster, {
    ...gatewayOptions,
    ingresses: 2,
    workers: 3,
    environment: { ...gatewayOptions.environment, NATS_REPLICAS: "3" }
  })
  const report = yield* Effect.promise(() =>
    billing({ gateway, servers: cluster.nodes }, {
      seed,
      forMs: minutes * 60_000,
      clients,
      batchLines,
      everyMs: 3_000,
      misbehaving: 0.15,
      log: (line) => process.stdout.write(`${line}\n`)
    })
  )
  yield* Console.log(lines(report).join("\n"))
  yield* writeSection({
    heading: "Billing",
    command: `BILLING_MINUTES=${minutes} BILLING_SEED=${seed} BILLING_CLIENTS=${clients} BILLING_BATCH=${batchLines} ` +
      "npm run billing",
    text: section(report)
  })
  if (report.wrong.length > 0) return yield* new Wrong({ what: report.wrong })
}).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

NodeRuntime.runMain(run)
