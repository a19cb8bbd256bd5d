/**
 * `npm run soak`: runs the gateway under load, and judges whether the resources of its processes and of NATS grow. Exits with an error
 * if memory grows by more than SOAK_MB_PER_HOUR (1) MB per hour, if handles, timers, subscriptions and the like grow by more than that
 * number, or if a request fails.
 *
 * SOAK_MINUTES (120), SOAK_STREAMS (5000 open streams), SOAK_CLIENTS (8 clients with other requests), SOAK_SETTLE_MINUTES (20: what
 * comes before is not judged), SOAK_DEPLOY_MINUTES (10: every process is replaced this often, except one of each kind),
 * SOAK_SAMPLE_SECONDS (30).
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Effect, FileSystem, Schema } from "effect"
import { join } from "node:path"
import { bundleServices } from "../fixture/gateway/Bundles.ts"
import { writeSection } from "../proof/Page.ts"
import { growthIn } from "./Growth.ts"
import { plot } from "./Plot.ts"
import { failures, textOf } from "./Report.ts"
import { monitoredGateway, soak } from "./Soak.ts"

class Broken extends Schema.TaggedError<Broken>()("Broken", { what: Schema.Array(Schema.String) }) {
  override get message() {
    return this.what.join("\n")
  }
}

/** Each stream lasts this long, in milliseconds. */
const streamMs = 60_000

const settings = Config.all({
  minutes: Config.Number("SOAK_MINUTES").pipe(Config.withDefault(120)),
  streams: Config.Int("SOAK_STREAMS").pipe(Config.withDefault(5_000)),
  clients: Config.Int("SOAK_CLIENTS").pipe(Config.withDefault(8)),
  settleMinutes: Config.Number("SOAK_SETTLE_MINUTES").pipe(Config.withDefault(20)),
  deployMinutes: Config.Number("SOAK_DEPLOY_MINUTES").pipe(Config.withDefault(10)),
  sampleSeconds: Config.Number("SOAK_SAMPLE_SECONDS").pipe(Config.withDefault(30)),
  mbPerHour: Config.Number("SOAK_MB_PER_HOUR").pipe(Config.withDefault(1))
})

const plotFile = "soak.svg"

const run = Effect.gen(function*() {
  const { clients, deployMinutes, mbPerHour, minutes, sampleSeconds, settleMinutes, streams } = yield* settings
  yield* Effect.promise(bundleServices)
  const { gateway, monitor } = yield* monitoredGateway(streams)
  const report = yield* Effect.promise(() =>
    soak(gateway, {
      forMs: minutes * 60_000,
      leastDeploys: 0,
      streams,
      streamMs,
      clients,
      deployEveryMs: deployMinutes * 60_000,
      sampleEveryMs: sampleSeconds * 1_000,
      monitor,
      log: (line) => process.stdout.write(`${line}\n`)
    })
  )
  const growth = growthIn(report.samples, settleMinutes * 60_000, mbPerHour)
  const command = `SOAK_MINUTES=${minutes} SOAK_STREAMS=${streams} SOAK_SETTLE_MINUTES=${settleMinutes} ` +
    `SOAK_DEPLOY_MINUTES=${deployMinutes} SOAK_MB_PER_HOUR=${mbPerHour} npm run soak`
  yield* writeSection({
    heading: "Soak",
    command,
    text: textOf(report, growth, { plotFile, minutes, settleMinutes, streams })
  })
  const fs = yield* FileSystem.FileSystem
  yield* fs.writeFileString(join(import.meta.dirname, "..", plotFile), plot(report.samples))
  const what = failures(report, growth)
  if (what.length > 0) return yield* new Broken({ what })
}).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

NodeRuntime.runMain(run)
