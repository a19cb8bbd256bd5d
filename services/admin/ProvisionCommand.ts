/** `provision`: makes the streams, consumers, buckets and stores that the services need, where they may not do so. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { layerBoth } from "../../shared/nats/Nats.ts"
import { provisionAll } from "../../shared/bus/provision/Provision.ts"
import { configured } from "../../shared/catalogue/CatalogueFile.ts"
import { poolsOf } from "../../shared/catalogue/Model.ts"
import * as Models from "../../shared/catalogue/Models.ts"
import { failPlainly } from "./Plainly.ts"

export const provision = Command.make(
  "provision",
  {},
  Effect.fn(
    function*() {
      const pools = poolsOf(yield* Models.load(yield* configured))
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
