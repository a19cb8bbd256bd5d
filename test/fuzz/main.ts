/**
 * `npm run fuzz`: sends FUZZ_REQUESTS (default 100,000) malformed requests over all operations, the same for the same
 * FUZZ_SEED (default 1), FUZZ_CLIENTS (16) at a time; then bodies of 2 MB in many shapes, one by one, and reports the slowest.
 * Exits with an error if one was not served or rejected properly, or a large one took longer than a second.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Config, Console, Effect, Schema } from "effect"
import { bundleServices } from "../fixture/gateway/Bundles.ts"
import { Gateway } from "../fixture/gateway/Gateway.ts"
import { environment, fuzz, services } from "./Fuzz.ts"

class Found extends Schema.TaggedError<Found>()("Found", { what: Schema.Array(Schema.String) }) {
  override get message() {
    return this.what.join("\n")
  }
}

const settings = Config.all({
  requests: Config.Int("FUZZ_REQUESTS").pipe(Config.withDefault(100_000)),
  seed: Config.Int("FUZZ_SEED").pipe(Config.withDefault(1)),
  clients: Config.Int("FUZZ_CLIENTS").pipe(Config.withDefault(16))
})

const run = Effect.gen(function*() {
  yield* Effect.promise(bundleServices)
  const options = yield* settings
  const gateway = yield* Gateway.make({ services, environment })
  const log = (line: string) => process.stdout.write(`${line}\n`)
  const { broken, findings } = yield* Effect.promise(() =>
    fuzz(gateway, { ...options, answeredWithinMs: 1_000, shapeStep: 1, log })
  )
  const what = [...findings.map((finding) => JSON.stringify(finding)), ...broken]
  if (what.length > 0) return yield* new Found({ what: what.slice(0, 50) })
  yield* Console.log("every request was served or rejected with a clear error")
}).pipe(Effect.scoped)

NodeRuntime.runMain(run)
