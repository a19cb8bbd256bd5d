/**
 * `npm run soak`: runs the gateway under load for SOAK_MINUTES (default 10) with SOAK_CLIENTS (8) concurrent requests. Exits
 * with an error if its processes or NATS hold more resources than before.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Console, Effect, Schema } from "effect"
import { bundleServices } from "../fixture/gateway/Bundles.ts"
import { Gateway } from "../fixture/gateway/Gateway.ts"
import { NatsServer } from "../fixture/nats/NatsServer.ts"
import { freePort } from "../fixture/gateway/ServiceProcess.ts"
import { environment, services, soak } from "./Soak.ts"

class Grown extends Schema.TaggedError<Grown>()("Grown", { what: Schema.Array(Schema.String) }) {
  override get message() {
    return this.what.join("\n")
  }
}

const settings = Config.all({
  minutes: Config.Number("SOAK_MINUTES").pipe(Config.withDefault(10)),
  clients: Config.Int("SOAK_CLIENTS").pipe(Config.withDefault(8))
})

const run = Effect.gen(function*() {
  yield* Effect.promise(bundleServices)
  const { clients, minutes } = yield* settings
  const port = yield* Effect.promise(freePort)
  const nats = yield* NatsServer.make({ words: ["--http_port", String(port)] })
  const gateway = yield* Gateway.makeOn(nats, { services, environment })
  const log = (line: string) => process.stdout.write(`${line}\n`)
  const monitor = `http://127.0.0.1:${port}`
  const report = yield* Effect.promise(() => soak(gateway, { forMs: minutes * 60_000, clients, monitor, log }))
  yield* Console.log(`requests ${report.requests}: ${JSON.stringify(report.tally)}`)
  for (const [index, { handles, heapMb, name, residentMb }] of report.after.processes.entries()) {
    const then = report.before.processes[index]
    yield* Console.log(
      `${name.padEnd(12)} heap ${then?.heapMb.toFixed(1)} to ${heapMb.toFixed(1)} MB, handles ${then?.handles} to ` +
        `${handles}, resident ${then?.residentMb.toFixed(0)} to ${residentMb.toFixed(0)} MB`
    )
  }
  yield* Console.log(`NATS         ${JSON.stringify(report.before.nats)} to ${JSON.stringify(report.after.nats)}`)
  if (report.grown.length > 0) return yield* new Grown({ what: report.grown })
}).pipe(Effect.scoped)

NodeRuntime.runMain(run)
