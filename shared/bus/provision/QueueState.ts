/** The length of a pool's queue and the age of its oldest job. */
import { type ConsumerInfo, jetstreamManager } from "@nats-io/jetstream"
import type { NatsConnection } from "@nats-io/nats-core"
import { DateTime, Effect } from "effect"
import type { Workload } from "../../contract/Operation.ts"
import { attempt, orMissing } from "../../nats/JetStream.ts"
import { Nats } from "../../nats/Nats.ts"
import { jobStream, jobSubject, versionsOf } from "../protocol/Subjects.ts"

export interface QueueState {
  /** Not yet delivered to a worker. */
  readonly pending: number
  /** Delivered, but not acknowledged. */
  readonly ackPending: number
  /** Of those, delivered more than once. */
  readonly redelivered: number
  /** When the oldest of these was published, in epoch milliseconds; `null` if the queue is empty. */
  readonly oldestAt: number | null
}

/** Of all versions of the protocol together. `null` if the queue does not exist yet. */
export const queueCounts = Effect.fnUntraced(function*(workload: Workload, pool: string) {
  const { connection } = yield* Nats
  const consumers = yield* attempt(async () => {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: 3_000 })
    const all = await Promise.all(
      versionsOf(workload).map((version) => orMissing(manager.consumers.info(jobStream(workload, version), pool)))
    )
    return all.filter((consumer) => consumer !== undefined)
  })
  const sum = (of: (consumer: ConsumerInfo) => number) => consumers.reduce((total, one) => total + of(one), 0)
  return consumers.length === 0 ? null : {
    pending: sum(({ num_pending }) => num_pending),
    ackPending: sum(({ num_ack_pending }) => num_ack_pending),
    redelivered: sum(({ num_redelivered }) => num_redelivered)
  }
})

/** `null` if the queue does not exist yet. */
export const queueState = Effect.fnUntraced(function*(workload: Workload, pool: string) {
  const counts = yield* queueCounts(workload, pool)
  if (counts === null) return null
  const { connection } = yield* Nats
  const isEmpty = counts.pending + counts.ackPending === 0
  const oldest = isEmpty ? null : yield* attempt(() => oldestAt(connection, workload, pool))
  return { ...counts, oldestAt: oldest } satisfies QueueState
})

/** The client's own API cannot read the first message of a subject. */
const oldestAt = async (connection: NatsConnection, workload: Workload, pool: string): Promise<number | null> => {
  const times = await Promise.all(
    versionsOf(workload).map(async (version) => {
      const question = JSON.stringify({ seq: 1, next_by_subj: jobSubject(workload, pool, version) })
      const subject = `$JS.API.STREAM.MSG.GET.${jobStream(workload, version)}`
      const answer = await connection.request(subject, question, { timeout: 3_000 })
      const { message } = answer.json<{ readonly message?: { readonly time: string } }>()
      return message === undefined ? [] : [DateTime.makeUnsafe(message.time).epochMilliseconds]
    })
  )
  return times.flat().toSorted((a, b) => a - b)[0] ?? null
}
