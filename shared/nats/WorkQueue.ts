/** Queues of small work items, stored on disk. An item is delivered to one of the processes that pull, again until it is settled. */
import {
  AckPolicy,
  type ConsumerConfig,
  DiscardPolicy,
  jetstream,
  JetStreamApiError,
  jetstreamManager,
  RetentionPolicy,
  StorageType
} from "@nats-io/jetstream"
import { nanos } from "@nats-io/nats-core"
import { Effect, Option } from "effect"
import {
  attempt,
  ensureStream,
  type JetStreamFailed,
  mayCreate,
  type NamedStream,
  orMissing,
  replicas
} from "./JetStream.ts"
import { Nats } from "./Nats.ts"
import type { WorkQueueSpec } from "./Storage.ts"

export interface WorkItem {
  readonly text: string
  /** Removes the item from the queue. */
  readonly done: Effect.Effect<void>
  /** Has the item delivered again after `delayMs` milliseconds. */
  readonly later: (delayMs: number) => Effect.Effect<void>
}

export interface WorkQueue {
  /** Adds an item; `false` if the queue has no room. An id that was added within the last two minutes is not added again. */
  readonly add: (subject: string, text: string, id: string) => Effect.Effect<boolean, JetStreamFailed>
  /** Waits up to half a minute for an item. */
  readonly next: Effect.Effect<Option.Option<WorkItem>, JetStreamFailed>
}

/** The one consumer of each queue. */
export const consumerName = "workers"

/** How long JetStream may take to answer, in milliseconds, and how long it holds a request for an item. */
const answerWithinMs = 5_000
const waitMs = 30_000

export const queueConfig = (queue: WorkQueueSpec, replicas: number): NamedStream => ({
  name: queue.name,
  subjects: [queue.subjects],
  retention: RetentionPolicy.Workqueue,
  storage: StorageType.File,
  discard: DiscardPolicy.New,
  discard_new_per_subject: true,
  num_replicas: replicas,
  max_msgs: queue.maxItems,
  max_msgs_per_subject: queue.maxItemsPerSubject,
  max_bytes: queue.maxBytes,
  max_age: nanos(queue.maxAgeMs),
  duplicate_window: nanos(2 * 60_000)
})

export const queueConsumer = ({ settledWithinMs }: WorkQueueSpec): Partial<ConsumerConfig> => ({
  durable_name: consumerName,
  ack_policy: AckPolicy.Explicit,
  ack_wait: nanos(settledWithinMs),
  max_deliver: -1,
  max_ack_pending: -1
})

/** JetStream's error code for a message that it could not store. */
const notStored = 10_077
const isFull = (cause: unknown): boolean =>
  cause instanceof JetStreamApiError && cause.code === notStored && /maximum (messages|bytes)/.test(cause.message)

/** Opens a queue, or creates it if `mayCreate`. */
export const openQueue = Effect.fn("WorkQueue.openQueue")(function*(queue: WorkQueueSpec) {
  const { connection } = yield* Nats
  const creates = yield* mayCreate
  const copies = yield* replicas
  if (creates) {
    yield* attempt(async () => {
      const manager = await jetstreamManager(connection, { checkAPI: false, timeout: answerWithinMs })
      await ensureStream(manager, queueConfig(queue, copies))
      if (await orMissing(manager.consumers.info(queue.name, consumerName)) !== undefined) return
      await manager.consumers.add(queue.name, queueConsumer(queue))
    })
  }
  const client = jetstream(connection, { timeout: answerWithinMs })
  return {
    add: (subject, text, id) =>
      attempt(async () => {
        try {
          await client.publish(subject, text, { msgID: id })
          return true
        } catch (cause) {
          if (isFull(cause)) return false
          throw cause
        }
      }),
    next: attempt(async (signal) => {
      const consumer = await client.consumers.get(queue.name, consumerName)
      const message = await consumer.next({ expires: waitMs })
      // the request stays open after an interruption of the fiber, so an item may still arrive
      if (signal.aborted) message?.nak()
      return Option.map(Option.fromNullishOr(message), (message): WorkItem => ({
        text: message.string(),
        done: Effect.sync(() => message.ack()),
        later: (delayMs) => Effect.sync(() => message.nak(delayMs))
      }))
    })
  } satisfies WorkQueue
})
