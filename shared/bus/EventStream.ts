/**
 * Streams of events in JetStream: kept on disk for a while, stored once each, read in the order in which they were stored.
 */
import type { StreamConfig } from "@nats-io/jetstream"
import {
  DeliverPolicy,
  DiscardPolicy,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType
} from "@nats-io/jetstream"
import { nanos } from "@nats-io/nats-core"
import { Config, Effect, Stream } from "effect"
import { attempt, ensureStream, JetStreamFailed } from "./JobStreams.ts"
import { Nats } from "./Nats.ts"

export interface EventStream {
  readonly name: string
  readonly subjects: string
  /** Events that are older, or more, are forgotten. */
  readonly maxAgeMs: number
  readonly maxBytes: number
  /** For how long an event that is sent again is known by its id. */
  readonly duplicatesMs: number
}

/** An event in its place. */
export interface StoredEvent {
  /** From 1, and never used twice in a stream. */
  readonly sequence: number
  readonly payload: string
}

const configOf = (stream: EventStream, replicas: number): Partial<StreamConfig> & { readonly name: string } => ({
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
 * Makes sure that the stream exists (see `provision` for `GATEWAY_PROVISION` and `NATS_REPLICAS`) and returns when it was
 * made: a stream that was removed and made again counts its events anew.
 */
export const openEvents = Effect.fn("EventStream.openEvents")(function*(stream: EventStream) {
  const nats = yield* Nats
  const replicas = yield* Config.Int("NATS_REPLICAS").pipe(Config.withDefault(1))
  const mayCreate = yield* Config.Boolean("GATEWAY_PROVISION").pipe(Config.withDefault(true))
  return yield* attempt(async () => {
    const manager = await jetstreamManager(nats.connection, { checkAPI: false, timeout: 3_000 })
    if (mayCreate) await ensureStream(manager, configOf(stream, replicas))
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
