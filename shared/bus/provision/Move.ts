/**
 * Moves data of versions with one account to the control account, where workers cannot overwrite it.
 *
 * Each stream is moved as a whole, by snapshot and restore: JetStream shows the new stream only when it is complete, with its
 * sequences, revisions and ages. An interrupted move therefore starts again, a completed one is skipped, and writes to the new
 * stream are never overwritten. The old stream stays unchanged.
 */
import { jetstreamManager } from "@nats-io/jetstream"
import type { Msg, NatsConnection } from "@nats-io/nats-core"
import { Effect, Schema, Stream } from "effect"
import { attempt, JetStreamFailed, orMissing } from "../../nats/JetStream.ts"
import { ControlNats, Nats } from "../../nats/Nats.ts"
import { buckets, bucketStream, events } from "../../nats/Storage.ts"

/**
 * In order: counters before spending. The counters store the place up to which usage was counted into both, so spending must
 * not be older than the counters, or the difference would never be counted.
 */
const moved = [
  bucketStream(buckets.usageCounters),
  bucketStream(buckets.usageSpend),
  bucketStream(buckets.apiKeys),
  events.keyChanges.name,
  bucketStream(buckets.consoleSessions)
]

/** How long the server may take for an answer or a piece of a snapshot, in milliseconds. */
const withinMs = 10_000

const pieceBytes = 128 * 1024

/** The fields of JetStream's answers that matter here. */
const decodeAnswer = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({
  error: Schema.optionalKey(Schema.Struct({ description: Schema.String })),
  config: Schema.optionalKey(Schema.Unknown),
  state: Schema.optionalKey(Schema.Unknown),
  deliver_subject: Schema.optionalKey(Schema.String)
})))

const ask = async (connection: NatsConnection, subject: string, question: string | Uint8Array) => {
  const { data } = await connection.request(subject, question, { timeout: withinMs })
  // the answer to an accepted piece is empty
  const answer = decodeAnswer(data.length === 0 ? "{}" : Buffer.from(data).toString())
  if (answer.error !== undefined) throw new Error(`${subject}: ${answer.error.description}`)
  return answer
}

/** An empty piece ends the snapshot; a header reports an error. */
const isLast = ({ data }: Msg): boolean => data.length === 0

const move = Effect.fn("Move.move")(function*(stream: string) {
  const from = yield* Nats
  const to = (yield* ControlNats).connection
  const pieces = yield* Effect.acquireRelease(
    Effect.sync(() => {
      const subject = from.inbox()
      return { subject, messages: from.connection.subscribe(subject) }
    }),
    ({ messages }) => Effect.sync(() => messages.unsubscribe())
  )
  const { config, state } = yield* attempt(() =>
    ask(
      from.connection,
      `$JS.API.STREAM.SNAPSHOT.${stream}`,
      JSON.stringify({ deliver_subject: pieces.subject, chunk_size: pieceBytes, no_consumers: true })
    )
  )
  const { deliver_subject: target = "" } = yield* attempt(() =>
    ask(to, `$JS.API.STREAM.RESTORE.${stream}`, JSON.stringify({ config, state }))
  )
  const stopped = (detail: string) => new JetStreamFailed({ detail: `the snapshot of ${stream} ${detail}` })
  yield* Stream.fromAsyncIterable(pieces.messages, (cause) => stopped(String(cause))).pipe(
    Stream.timeoutOrElse({ duration: withinMs, orElse: () => Stream.fail(stopped("has stopped")) }),
    Stream.takeUntil(isLast),
    Stream.runForEach((piece) =>
      attempt(async () => {
        if (isLast(piece) && (piece.headers?.code ?? 0) >= 400) throw stopped(`ended: ${piece.headers?.description}`)
        await ask(to, target, piece.data)
        // asks the server for the next piece
        piece.respond()
      })
    )
  )
}, Effect.scoped)

/** Moves the streams that only the data account has, and returns their names. */
export const moveAll = Effect.gen(function*() {
  const managers = yield* Effect.forEach(
    [yield* Nats, yield* ControlNats],
    ({ connection }) => attempt(() => jetstreamManager(connection, { checkAPI: false, timeout: withinMs }))
  )
  const done: Array<string> = []
  for (const stream of moved) {
    const [inData, inControl] = yield* Effect.forEach(
      managers,
      (manager) => attempt(() => orMissing(manager.streams.info(stream)))
    )
    if (inData === undefined || inControl !== undefined) continue
    yield* move(stream)
    done.push(stream)
  }
  return done
})
