/**
 * Reads and writes whole streams as JetStream snapshots. A restored stream has the same messages, sequences, revisions and ages, and
 * becomes visible only when it is complete.
 */
import type { Msg, NatsConnection } from "@nats-io/nats-core"
import { Effect, Schema, Stream } from "effect"
import { attempt, JetStreamFailed } from "../../nats/JetStream.ts"
import type { Nats } from "../../nats/Nats.ts"

/** How long the server may take to answer or to send a piece of a snapshot, in milliseconds. */
const withinMs = 10_000

/** How long the server may take to unpack each MiB of a stream when it has all pieces, in milliseconds: a slow disk's pace. */
const unpackedWithinMs = 250

const pieceBytes = 128 * 1024

/** The stream of a snapshot: its configuration and state, both as JetStream's JSON. */
export const StreamState = Schema.Struct({ config: Schema.Unknown, state: Schema.Unknown })
export type StreamState = typeof StreamState.Type

/** The fields of JetStream's answers that matter here. */
const decodeAnswer = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({
  error: Schema.optionalKey(Schema.Struct({ description: Schema.String })),
  config: Schema.optionalKey(Schema.Unknown),
  state: Schema.optionalKey(Schema.Unknown),
  deliver_subject: Schema.optionalKey(Schema.String)
})))

const ask = async (
  connection: NatsConnection,
  subject: string,
  question: string | Uint8Array,
  timeout = withinMs
) => {
  const { data } = await connection.request(subject, question, { timeout })
  // the answer to an accepted piece is empty
  const answer = decodeAnswer(data.length === 0 ? "{}" : Buffer.from(data).toString())
  if (answer.error !== undefined) throw new Error(`${subject}: ${answer.error.description}`)
  return answer
}

/** An empty piece ends the snapshot; a header reports an error. */
const isLast = ({ data }: Msg): boolean => data.length === 0

export interface Snapshot extends StreamState {
  /** In order; the last one is empty. The server sends up to 8 MiB ahead of the consumer. */
  readonly pieces: Stream.Stream<Uint8Array, JetStreamFailed>
}

/** Starts a snapshot of a stream, with its consumers or without. */
export const take = Effect.fn("Snapshot.take")(function*(
  from: Nats["Service"],
  stream: string,
  { consumers }: { readonly consumers: boolean }
) {
  const { messages, subject } = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const subject = from.inbox()
      return { subject, messages: from.connection.subscribe(subject) }
    }),
    ({ messages }) => Effect.sync(() => messages.unsubscribe())
  )
  const question = { deliver_subject: subject, chunk_size: pieceBytes, no_consumers: !consumers }
  const { config, state } = yield* attempt(() =>
    ask(from.connection, `$JS.API.STREAM.SNAPSHOT.${stream}`, JSON.stringify(question))
  )
  const stopped = (detail: string) => new JetStreamFailed({ detail: `the snapshot of ${stream} ${detail}` })
  const pieces = Stream.fromAsyncIterable(messages, (cause) => stopped(String(cause))).pipe(
    Stream.timeoutOrElse({ duration: withinMs, orElse: () => Stream.fail(stopped("has stopped")) }),
    Stream.takeUntil(isLast),
    Stream.mapEffect((piece) => {
      const { code = 0, description } = piece.headers ?? {}
      if (isLast(piece) && code >= 400) return Effect.fail(stopped(`ended: ${description}`))
      // asks the server for the next piece
      piece.respond()
      return Effect.succeed(piece.data)
    })
  )
  return { config, state, pieces } satisfies Snapshot
})

/** Creates a stream from the pieces of a snapshot, of any size; the last one is empty. Fails if the stream exists. */
export const restore = Effect.fn("Snapshot.restore")(function*<E, R>(
  to: NatsConnection,
  stream: string,
  { config, state }: StreamState,
  pieces: Stream.Stream<Uint8Array, E, R>
) {
  const { deliver_subject: target = "" } = yield* attempt(() =>
    ask(to, `$JS.API.STREAM.RESTORE.${stream}`, JSON.stringify({ config, state }))
  )
  const { bytes = 0 } = state as { readonly bytes?: number }
  const unpackMs = withinMs + (bytes / 1024 ** 2) * unpackedWithinMs
  yield* Stream.runForEach(
    pieces,
    // the server unpacks the stream before it answers the last piece
    (piece) => attempt(() => ask(to, target, piece, piece.length === 0 ? unpackMs : withinMs))
  )
})
