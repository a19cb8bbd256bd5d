/** Announces events to the webhook receiver of their owner, if the owner has one. */
import { Effect, Option } from "effect"
import { whileJetStreamFails } from "../nats/JetStream.ts"
import { openDeliveries } from "./Deliveries.ts"
import type { Event } from "./Delivery.ts"
import { openEndpoints } from "./Endpoints.ts"

export type Announcer = Effect.Success<typeof openAnnouncer>

/** Reads `GATEWAY_SECRET`. */
export const openAnnouncer = Effect.gen(function*() {
  const endpoints = yield* Effect.retry(openEndpoints, whileJetStreamFails)
  const deliveries = yield* Effect.retry(openDeliveries, whileJetStreamFails)
  return {
    /** Returns when the event is stored and queued. May be repeated: an id is announced only once. */
    announce: Effect.fn("Announcer.announce")(function*(owner: string, event: Event) {
      if (Option.isSome(yield* endpoints.find(owner))) yield* deliveries.add(owner, event)
    })
  }
})
