/** Reads many records of a bucket at once: by a few requests, however many they are, and no faster than they are taken. */
import { DeliverPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { Effect, Option, Stream } from "effect"
import { attempt, JetStreamFailed } from "./JetStream.ts"
import type { Nats } from "./Nats.ts"

export interface Entry {
  readonly key: string
  /** Empty where the key was deleted. */
  readonly value: Option.Option<string>
}

/** For how long nothing may come of what was asked for, in milliseconds. */
const quietMs = 10_000

/** How long the server may take to answer a request, in milliseconds. */
const answerWithinMs = 5_000

const isDeleted = (operation: string | undefined): boolean => operation === "DEL" || operation === "PURGE"

const subjectsOf = Effect.fnUntraced(function*(nats: Nats["Service"], stream: string, filter: string) {
  const manager = yield* attempt(() => jetstreamManager(nats.connection, { checkAPI: false, timeout: answerWithinMs }))
  const { state } = yield* attempt(() => manager.streams.info(stream, { subjects_filter: filter }))
  return Object.keys(state.subjects ?? {})
})

/** The keys that the filter matches, of records that may be deleted by now. */
export const keysOf = (
  nats: Nats["Service"],
  stream: string,
  prefix: string,
  filter: string
): Effect.Effect<ReadonlyArray<string>, JetStreamFailed> =>
  Effect.map(
    subjectsOf(nats, stream, prefix + filter),
    (subjects) => subjects.map((subject) => subject.slice(prefix.length))
  )

/**
 * Every record that is there at this moment and whose key the filter matches, once each. Which these are is asked first: the
 * server's own count of what is still to come is wrong where others write meanwhile.
 */
export const entriesOf = (
  nats: Nats["Service"],
  stream: string,
  prefix: string,
  filter: string
): Stream.Stream<Entry, JetStreamFailed> =>
  Stream.unwrap(Effect.gen(function*() {
    const awaited = new Set(yield* subjectsOf(nats, stream, prefix + filter))
    if (awaited.size === 0) return Stream.empty
    const { messages } = yield* Effect.acquireRelease(
      attempt(async () => {
        const consumer = await jetstream(nats.connection, { timeout: answerWithinMs }).consumers.getPushConsumer(
          stream,
          {
            // of each key a bucket has one record, so these are the last ones
            deliver_policy: DeliverPolicy.All,
            filter_subjects: prefix + filter
          }
        )
        const messages = await consumer.consume()
        const forget = nats.onReconnect(() => messages.stop(new Error("the connection was lost")))
        return { consumer, messages, forget }
      }),
      ({ consumer, forget, messages }) =>
        Effect.sync(() => {
          forget()
          messages.stop()
          // the server forgets it by itself where this does not reach it
          consumer.delete().catch(() => undefined)
        })
    )
    const stopped = new JetStreamFailed({ detail: `reading of ${stream} has stopped` })
    return Stream.fromAsyncIterable(
      messages,
      (cause) => new JetStreamFailed({ detail: cause instanceof Error ? cause.message : String(cause) })
    ).pipe(
      Stream.concat(Stream.fail(stopped)),
      Stream.timeoutOrElse({ duration: quietMs, orElse: () => Stream.fail(stopped) }),
      // what is written meanwhile comes again
      Stream.map((message) => ({ message, isNew: awaited.delete(message.subject), isLast: awaited.size === 0 })),
      Stream.takeUntil(({ isLast }) => isLast),
      Stream.filter(({ isNew, message }) => isNew && !isDeleted(message.headers?.get("KV-Operation"))),
      Stream.map(({ message }) => ({
        key: message.subject.slice(prefix.length),
        value: Option.some(message.string())
      }))
    )
  }))
