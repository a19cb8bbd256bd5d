/** The usage events of a simulation. */
import { Option } from "effect"
import { eventsOf } from "../../shared/nats/EventStream.ts"
import { RecentEvents } from "../../shared/usage/RecentEvents.ts"
import { decodeUsageEvent, isOfLostWorker, type UsageEvent } from "../../shared/usage/UsageEvent.ts"
import type { Message } from "./nats/Protocol.ts"
import type { Ended } from "./Simulation.ts"

const decode = ({ payload }: Message): ReadonlyArray<UsageEvent> =>
  eventsOf(payload.toString()).map((text) => Option.getOrThrow(decodeUsageEvent(text)))

export const usageEventsOf = ({ cluster: { jetStream } }: Ended) => {
  const stream = jetStream.streams.get("USAGE")
  const recent = new RecentEvents("", 1)
  const pages = [...stream?.messages.values() ?? []]
  const changes = pages.flatMap(({ at, message, sequence }) =>
    recent.read({ sequence, storedAt: at, events: [] }, decode(message))
  )
  const withdrawn = new Set(changes.filter(({ isWithdrawn }) => isWithdrawn).map(({ event }) => event))
  return {
    /** The events that the projector counts. */
    events: changes.map(({ event }) => event).filter((event) => !withdrawn.has(event)),
    /** The events that workers have stored about their own calls, counted or not. */
    own: pages.flatMap(({ message }) => decode(message)).filter((event) => !isOfLostWorker(event)),
    /** The ids of events that were confirmed and that the stream has lost. They cannot be written again. */
    forgotten: new Set([...stream?.forgotten.values() ?? []].flatMap(decode).map(({ id }) => id))
  }
}
