/**
 * Moves the data of releases that had only one account to the control account, where workers cannot overwrite it.
 *
 * Each stream is moved as a whole, by snapshot and restore: JetStream shows the new stream only when it is complete, with its
 * sequences, revisions and ages. So an interrupted move starts again, a completed one is skipped, and writes to the new stream are
 * never overwritten. The old stream stays unchanged.
 */
import { jetstreamManager } from "@nats-io/jetstream"
import { Effect } from "effect"
import { attempt, orMissing } from "../../nats/JetStream.ts"
import { ControlNats, Nats } from "../../nats/Nats.ts"
import { buckets, bucketStream, events } from "../../nats/Storage.ts"
import * as Snapshot from "./Snapshot.ts"

/**
 * The streams to move, in order: counters before spending. The counters store the position up to which usage has been counted into
 * both. If spending were older than the counters, the difference would never be counted.
 */
const moved = [
  bucketStream(buckets.usageCounters),
  bucketStream(buckets.usageSpend),
  bucketStream(buckets.apiKeys),
  events.keyChanges.name,
  bucketStream(buckets.consoleSessions)
]

/** How long the server may take to answer, in milliseconds. */
const withinMs = 10_000

const move = Effect.fn("Move.move")(function*(stream: string) {
  const snapshot = yield* Snapshot.take(yield* Nats, stream, { consumers: false })
  yield* Snapshot.restore((yield* ControlNats).connection, stream, snapshot, snapshot.pieces)
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
