/** `provision`: makes the streams, consumers, buckets and stores that the services need, where they may not do so. */
import { Config, Console, Effect } from "effect"
import { Command } from "effect/cli"
import { layerBoth } from "../../shared/bus/Nats.ts"
import { provisionAll } from "../../shared/bus/Provision.ts"
import * as Catalogue from "../../shared/catalogue/Catalogue.ts"
import { failPlainly } from "./Plainly.ts"

export const provision = Command.make(
  "provision",
  {},
  Effect.fn(
    function*() {
      const file = yield* Config.String("GATEWAY_CONFIG").pipe(Config.withDefault("deploy/local/gateway.yaml"))
      const pools = Catalogue.poolsOf(yield* Catalogue.load(file))
      for (const { name, outcome } of yield* provisionAll(pools)) yield* Console.log(`${name}: ${outcome}`)
    },
    Effect.provide(layerBoth),
    failPlainly
  )
).pipe(
  Command.withDescription(
    "Make what the gateway keeps in the NATS that NATS_URL names, for the pools of GATEWAY_CONFIG; may be repeated"
  )
)
