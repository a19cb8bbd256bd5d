/** Asks JetStream for the length of a pool's queue and the age of its oldest job. */
import { type ConsumerInfo, jetstreamManager } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/nats-core"
import { DateTime, Effect } from "effect"
import { attempt, type JetStreamFailed, orMissing } from "../../nats/JetStream.ts"
import { Nats } from "../../nats/Nats.ts"
import { jobStream, poolSubjects, type QueueName, type Version, versionsOf } from "../protocol/Subjects.ts"

export interface QueueState {
  /** Not yet delivered to a worker. */
  readonly pending: number
  /** Delivered, but not acknowledged. */
  readonly ackPending: number
  /** How many of the `ackPending` were delivered more than once. */
  readonly redelivered: number
  /** When the oldest of these was published, in epoch milliseconds; `null` if the queue is empty. */
  readonly oldestAt: number | null
}

/** The answers about the queue of each version. Fails only if there is none, since the queue of one version may have no leader. */
const ofVersions = <A>(
  queue: QueueName,
  ask: (version: Version) => Promise<A>
): Effect.Effect<ReadonlyArray<NonNullable<A>>, JetStreamFailed> =>
  Effect.partition(versionsOf(queue), (version) => attempt(() => ask(version)), { concurrency: "unbounded" }).pipe(
    Effect.flatMap(([answers, [failure]]) =>
      answers.length === 0 && failure !== undefined
        ? Effect.fail(failure)
        : Effect.succeed(answers.flatMap((answer) => answer ?? []))
    )
  )

/** The counts over all protocol versions. `null` if the queue does not exist yet. */
export const queueCounts = Effect.fnUntraced(function*(queue: QueueName, pool: string) {
  const { connection } = yield* Nats
  const consumers = yield* ofVersions(queue, async (version) => {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: 3_000 })
    return orMissing(manager.consumers.info(jobStream(queue, version), pool))
  })
  const sum = (of: (consumer: ConsumerInfo) => number) => consumers.reduce((total, one) => total + of(one), 0)
  return consumers.length === 0 ? null : {
    pending: sum(({ num_pending }) => num_pending),
    ackPending: sum(({ num_ack_pending }) => num_ack_pending),
    redelivered: sum(({ num_redelivered }) => num_redelivered)
  }
})

/** The counts with the age of the oldest job. `null` if the queue does not exist yet. */
export const queueState = Effect.fnUntraced(function*(queue: QueueName, pool: string) {
  const counts = yield* queueCounts(queue, pool)
  if (counts === null) return null
  const { connection } = yield* Nats
  const isEmpty = counts.pending + counts.ackPending === 0
  const oldest = isEmpty ? [] : yield* ofVersions(queue, (version) => oldestAt(connection, queue, pool, version))
  return { ...counts, oldestAt: oldest.length === 0 ? null : Math.min(...oldest) } satisfies QueueState
})

/** When the oldest job was published. A raw request, because the client library cannot read the first message of a subject. */
const oldestAt = async (connection: NatsConnection, queue: QueueName, pool: string, version: Version) => {
  const question = JSON.stringify({ seq: 1, next_by_subj: poolSubjects(queue, pool, version) })
  const subject = `$JS.API.STREAM.MSG.GET.${jobStream(queue, version)}`
  const answer = await connection.request(subject, question, { timeout: 3_000 })
  const { message } = answer.json<{ readonly message?: { readonly time: string } }>()
  return message === undefined ? undefined : DateTime.makeUnsafe(message.time).epochMilliseconds
}
