/** `provision`: creates the streams, consumers, buckets and object stores, for services that lack the right to create them. */
import { Console, Effect } from "effect"
import { Command } from "effect/cli"
import { layerBoth } from "../../shared/nats/Nats.ts"
import { provisionAll } from "../../shared/bus/provision/Provision.ts"
import { catalogueFile } from "../../shared/catalogue/CatalogueFile.ts"
import { poolsOf } from "../../shared/catalogue/Model.ts"
import * as Models from "../../shared/catalogue/Models.ts"

export const provision = Command.make(
  "provision",
  {},
  Effect.fn(function*() {
    const pools = poolsOf(yield* Models.load(yield* catalogueFile))
    for (const { name, outcome } of yield* provisionAll(pools)) yield* Console.log(`${name}: ${outcome}`)
  }, Effect.provide(layerBoth))
).pipe(
  Command.withDescription(
    "Create the gateway's streams and buckets in the NATS at NATS_URL, for the pools in GATEWAY_CONFIG. Safe to repeat"
  )
)
