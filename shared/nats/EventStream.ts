/** Opens and reads streams of events in JetStream. Events are stored in pages on disk, for a limited time, and read in order. */
import {
  type ConsumerMessages,
  DeliverPolicy,
  DiscardPolicy,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
  StorageType
} from "@nats-io/jetstream"
import { nanos, nuid } from "@nats-io/nats-core"
import { Effect, Stream } from "effect"
import {
  attempt,
  ensureStream,
  JetStreamFailed,
  jetStreamFailed,
  mayCreate,
  type NamedStream,
  replicas
} from "./JetStream.ts"
import { Nats, natsOf } from "./Nats.ts"
import type { EventStreamSpec } from "./Storage.ts"

/** A page: the events of one message, and its place in the stream. */
export interface Page {
  /** From 1; a stream never reuses a number. */
  readonly sequence: number
  /** When it was stored, in epoch milliseconds. */
  readonly storedAt: number
  readonly events: ReadonlyArray<string>
}

/** The payload of a page: one event per line. */
export const encodePage = (events: ReadonlyArray<string>): Uint8Array => Buffer.from(events.join("\n"))
export const eventsOf = (payload: string): ReadonlyArray<string> => payload.split("\n")

/** What precedes the identity of a stream in its description. */
const identityPrefix = "identity "

/** The parts of JetStream's answers about a stream that can identify it. */
interface Identified {
  readonly config: { readonly description?: string | undefined }
  readonly created: string
}

/**
 * The identity of a stream, for records that say up to which page they count. It is ours and in the stream's description, which backups,
 * restores and moves keep, and not the creation time, which a restore may change. Until provisioning has written one, it is that time.
 */
export const identityOf = ({ config: { description = "" }, created }: Identified): string =>
  description.startsWith(identityPrefix) ? description.slice(identityPrefix.length) : created

/** The description that gives a stream its identity: the one that it has, or, for a new stream, a new one. */
export const describe = (known: Identified | undefined): string =>
  identityPrefix + (known === undefined ? nuid.next() : identityOf(known))

/** The configuration of a stream; `known` if it exists. */
export const eventConfig = (stream: EventStreamSpec, replicas: number, known?: Identified): NamedStream => ({
  name: stream.name,
  description: describe(known),
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
 * Opens a stream, or creates it if `mayCreate`. Returns its identity, because a recreated stream numbers its pages from 1 again.
 */
export const openEvents = Effect.fn("EventStream.openEvents")(function*<K extends EventStreamSpec>(stream: K) {
  const nats = yield* natsOf(stream)
  const creates = yield* mayCreate
  const copies = yield* replicas
  return yield* attempt(async () => {
    const manager = await jetstreamManager(nats.connection, { checkAPI: false, timeout: 3_000 })
    if (creates) await ensureStream(manager, eventConfig(stream, copies))
    return { identity: identityOf(await manager.streams.info(stream.name)) }
  })
})

/** The sequence of the last page; 0 if there was none. */
export const lastSequence = Effect.fnUntraced(function*<K extends EventStreamSpec>(stream: K) {
  const nats = yield* natsOf(stream)
  return yield* attempt(async () => {
    const manager = await jetstreamManager(nats.connection, { checkAPI: false, timeout: 3_000 })
    return (await manager.streams.info(stream.name)).state.last_seq
  })
})

/** Options of the consumer. Times are in milliseconds. */
const reading = { max_messages: 1_000, expires: 10_000, idle_heartbeat: 2_000 } as const

/** Every page from a sequence on. Never ends; fails if the connection is lost or the server drops the consumer. */
export const readEvents = (name: string, from: number): Stream.Stream<Page, JetStreamFailed, Nats> =>
  Stream.unwrap(Effect.gen(function*() {
    const nats = yield* Nats
    const consumer = yield* openConsumer(() =>
      jetstream(nats.connection).consumers.get(name, {
        deliver_policy: DeliverPolicy.StartSequence,
        opt_start_seq: from
      })
    )
    const messages = yield* openMessages(nats, () => consumer.consume(reading))
    return messages.pipe(
      Stream.map((message) => ({
        sequence: message.seq,
        storedAt: message.time.getTime(),
        events: eventsOf(message.string())
      })),
      Stream.concat(Stream.fail(new JetStreamFailed({ detail: `the reader of ${name} has ended` })))
    )
  }))

/** Creates a consumer for one reader. Deletes it when the scope closes, because the server would keep it for five more minutes. */
export const openConsumer = <C extends { readonly delete: () => Promise<boolean> }>(create: () => Promise<C>) =>
  Effect.acquireRelease(
    attempt(create),
    // if the deletion does not reach the server, the consumer expires
    (consumer) => Effect.sync(() => void consumer.delete().catch(() => undefined))
  )

/** The messages of a consumer, until the connection is lost or the scope closes. */
export const openMessages = (nats: Nats["Service"], consume: () => Promise<ConsumerMessages>) =>
  Effect.acquireRelease(
    attempt(async () => {
      const messages = await consume()
      return { messages, forget: nats.onReconnect(() => messages.stop(new Error("the connection was lost"))) }
    }),
    ({ forget, messages }) =>
      Effect.sync(() => {
        forget()
        messages.stop()
      })
  ).pipe(Effect.map(({ messages }) => Stream.fromAsyncIterable(messages, jetStreamFailed)))
