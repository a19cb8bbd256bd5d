/**
 * Streams of events in JetStream: kept on disk for a while, stored once each, read in the order in which they were stored.
 */
import {
  DeliverPolicy,
  DiscardPolicy,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType
} from "@nats-io/jetstream"
import { nanos } from "@nats-io/nats-core"
import { Effect, Stream } from "effect"
import { attempt, ensureStream, JetStreamFailed, mayCreate, type NamedStream, replicas } from "./JetStream.ts"
import { Nats, natsOf } from "./Nats.ts"
import type { KeptEvents } from "./Storage.ts"

/** An event in its place. */
export interface StoredEvent {
  /** From 1, and never used twice in a stream. */
  readonly sequence: number
  readonly payload: string
}

export const eventConfig = (stream: KeptEvents, replicas: number): NamedStream => ({
  name: stream.name,
  subjects: [stream.subjects],
  retention: RetentionPolicy.Limits,
  storage: StorageType.File,
  discard: DiscardPolicy.Old,
  num_replicas: replicas,
  max_bytes: stream.maxBytes,
  max_age: nanos(stream.maxAgeMs),
  duplicate_window: nanos(stream.duplicatesMs)
})

/**
 * Makes sure that the stream exists, see `mayCreate`, and returns when it was made: a stream that was removed and made again
 * counts its events anew.
 */
export const openEvents = Effect.fn("EventStream.openEvents")(function*<K extends KeptEvents>(stream: K) {
  const nats = yield* natsOf(stream)
  const creates = yield* mayCreate
  const copies = yield* replicas
  return yield* attempt(async () => {
    const manager = await jetstreamManager(nats.connection, { checkAPI: false, timeout: 3_000 })
    if (creates) await ensureStream(manager, eventConfig(stream, copies))
    return { created: (await manager.streams.info(stream.name)).created }
  })
})

/** How the server is asked for events. Times are in milliseconds. */
const reading = { max_messages: 1_000, expires: 10_000, idle_heartbeat: 2_000 } as const

/** Every event from a place on, without end. Fails when the connection was lost or the server has forgotten the reader. */
export const readEvents = (name: string, from: number): Stream.Stream<StoredEvent, JetStreamFailed, Nats> =>
  Stream.unwrap(Effect.gen(function*() {
    const nats = yield* Nats
    const messages = yield* Effect.acquireRelease(
      attempt(async () => {
        const consumer = await jetstream(nats.connection).consumers.get(name, {
          deliver_policy: DeliverPolicy.StartSequence,
          opt_start_seq: from
        })
        const messages = await consumer.consume(reading)
        const forget = nats.onReconnect(() => messages.stop(new Error("the connection was lost")))
        return { messages, forget }
      }),
      ({ forget, messages }) =>
        Effect.sync(() => {
          forget()
          messages.stop()
        })
    )
    return Stream.fromAsyncIterable(
      messages.messages,
      (cause) => new JetStreamFailed({ detail: cause instanceof Error ? cause.message : String(cause) })
    ).pipe(
      Stream.map((message) => ({ sequence: message.seq, payload: message.string() })),
      Stream.concat(Stream.fail(new JetStreamFailed({ detail: `reading of ${name} has ended` })))
    )
  }))
