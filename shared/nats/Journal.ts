/** Appends events to a stream and reads the latest ones. Meant for records that people read, a few at a time. */
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { Array, Effect } from "effect"
import { eventsOf, openEvents } from "./EventStream.ts"
import { attempt, type JetStreamFailed } from "./JetStream.ts"
import { natsOf } from "./Nats.ts"
import type { EventStreamSpec } from "./Storage.ts"

export interface Journal {
  /** Appends an event, and returns when it is on disk. */
  readonly append: (subject: string, payload: string) => Effect.Effect<void, JetStreamFailed>
  /** At most `count` events, the newest first. */
  readonly latest: (count: number) => Effect.Effect<ReadonlyArray<string>, JetStreamFailed>
}

/** How many pages of events are fetched concurrently. */
const fetchConcurrency = 50

/** Opens the stream, or creates it if this process may; see `openEvents`. */
export const openJournal = Effect.fn("Journal.openJournal")(function*<K extends EventStreamSpec>(stream: K) {
  const nats = yield* natsOf(stream)
  yield* openEvents(stream)
  const manager = yield* attempt(() => jetstreamManager(nats.connection, { checkAPI: false, timeout: 3_000 }))
  const publisher = jetstream(nats.connection, { timeout: 3_000 })
  return {
    append: (subject, payload) => Effect.asVoid(attempt(() => publisher.publish(subject, payload))),
    latest: Effect.fnUntraced(function*(count) {
      const { state } = yield* attempt(() => manager.streams.info(stream.name))
      const found: Array<string> = []
      if (state.messages === 0) return found
      let last = state.last_seq
      while (found.length < count && last >= state.first_seq) {
        const first = Math.max(state.first_seq, last - Math.min(fetchConcurrency, count - found.length) + 1)
        const pages = yield* Effect.forEach(
          Array.range(first, last).toReversed(),
          (seq) => attempt(() => manager.streams.getMessage(stream.name, { seq })),
          { concurrency: "unbounded" }
        )
        for (const page of pages) if (page !== null) found.push(...eventsOf(page.string()).toReversed())
        last = first - 1
      }
      return found.slice(0, count)
    })
  } satisfies Journal
})
