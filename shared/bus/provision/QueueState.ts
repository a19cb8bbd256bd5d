/** The length of a pool's queue and the age of its oldest job. */
import { jetstreamManager } from "@nats-io/jetstream"
import { DateTime, Effect } from "effect"
import type { Workload } from "../../contract/Operation.ts"
import { attempt, isMissing, type JetStreamFailed } from "../../nats/JetStream.ts"
import { Nats } from "../../nats/Nats.ts"
import { jobStream, jobSubject } from "../protocol/Subjects.ts"

export interface QueueState {
  /** Not yet delivered to a worker. */
  readonly pending: number
  /** Delivered, but not acknowledged. */
  readonly ackPending: number
  /** Of those, delivered more than once. */
  readonly redelivered: number
  /** Jobs that workers are requesting: free slots. */
  readonly asked: number
  /** When the oldest of these was published, in epoch milliseconds; `null` if the queue is empty. */
  readonly oldestAt: number | null
}

const orMissing = <A>(promise: Promise<A>): Promise<A | null> =>
  promise.catch((cause) => {
    if (isMissing(cause)) return null
    throw cause
  })

/** `null` if the queue does not exist yet. */
export const queueCounts = (
  workload: Workload,
  pool: string
): Effect.Effect<Omit<QueueState, "oldestAt"> | null, JetStreamFailed, Nats> =>
  Effect.flatMap(Nats, (nats) => attempt(() => countsOf(nats, workload, pool)))

/** `null` if the queue does not exist yet. */
export const queueState = (workload: Workload, pool: string): Effect.Effect<QueueState | null, JetStreamFailed, Nats> =>
  Effect.flatMap(Nats, (nats) =>
    attempt(async () => {
      const counts = await countsOf(nats, workload, pool)
      if (counts === null) return null
      const isEmpty = counts.pending + counts.ackPending === 0
      const oldest = isEmpty ? null : await oldestAt(nats, jobStream(workload), jobSubject(workload, pool))
      return { ...counts, oldestAt: oldest }
    }))

const countsOf = async (nats: Nats["Service"], workload: Workload, pool: string) => {
  const manager = await jetstreamManager(nats.connection, { checkAPI: false, timeout: 3_000 })
  const consumer = await orMissing(manager.consumers.info(jobStream(workload), pool))
  return consumer === null ? null : {
    pending: consumer.num_pending,
    ackPending: consumer.num_ack_pending,
    redelivered: consumer.num_redelivered,
    asked: consumer.num_waiting
  }
}

/** The client's own API cannot read the first message of a subject. */
const oldestAt = async (nats: Nats["Service"], stream: string, subject: string): Promise<number | null> => {
  const question = JSON.stringify({ seq: 1, next_by_subj: subject })
  const answer = await nats.connection.request(`$JS.API.STREAM.MSG.GET.${stream}`, question, { timeout: 3_000 })
  const { message } = answer.json<{ readonly message?: { readonly time: string } }>()
  return message === undefined ? null : DateTime.makeUnsafe(message.time).epochMilliseconds
}
