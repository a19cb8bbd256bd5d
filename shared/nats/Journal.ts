/** Appends events to a stream and reads the latest: for records that people read, a few at a time. */
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { Array, Effect } from "effect"
import { openEvents } from "./EventStream.ts"
import { attempt, type JetStreamFailed } from "./JetStream.ts"
import { natsOf } from "./Nats.ts"
import type { EventStreamSpec } from "./Storage.ts"

export interface Journal {
  /** Returns when the event is on disk. */
  readonly append: (subject: string, payload: string) => Effect.Effect<void, JetStreamFailed>
  /** At most `count` events, the newest first. */
  readonly latest: (count: number) => Effect.Effect<ReadonlyArray<string>, JetStreamFailed>
}

/** How many events are fetched concurrently. */
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
      const oldest = Math.max(state.first_seq, state.last_seq - count + 1)
      const found = yield* Effect.forEach(
        state.messages === 0 ? [] : Array.range(oldest, state.last_seq).toReversed(),
        (seq) => attempt(() => manager.streams.getMessage(stream.name, { seq })),
        { concurrency: fetchConcurrency }
      )
      return found.flatMap((message) => message === null ? [] : [message.string()])
    })
  } satisfies Journal
})
