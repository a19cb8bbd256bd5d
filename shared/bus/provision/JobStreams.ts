/**
 * The JetStream streams and consumers that store jobs until a worker takes them: one stream per queue and version of the
 * protocol, one durable consumer per pool.
 *
 * A single server stores interactive jobs in memory, since a job is useless once its client's socket is closed. Clusters store
 * them on disk: if the servers of a memory stream restart one after another, they may elect a leader that has lost its messages.
 * The jobs of durable tasks outlive their client's connection and are always on disk.
 */
import type { ConsumerConfig } from "@nats-io/jetstream"
import { AckPolicy, DiscardPolicy, jetstreamManager, RetentionPolicy, StorageType } from "@nats-io/jetstream"
import { nanos } from "@nats-io/nats-core"
import { Effect } from "effect"
import * as Metrics from "../../telemetry/Metrics.ts"
import { ackWaitMs, batchAgeMs, inlineBodyBytes, maxDeliveries, taskAgeMs } from "../protocol/Timings.ts"
import {
  attempt,
  backOff,
  ensureStream,
  mayCreate,
  type NamedStream,
  orMissing,
  replicas
} from "../../nats/JetStream.ts"
import { Nats } from "../../nats/Nats.ts"
import {
  batchQueue,
  isByOwner,
  isTaskQueue,
  jobStream,
  jobStreamSubjects,
  mostOfOwner,
  poolSubjects,
  type QueueName,
  type Version
} from "../protocol/Subjects.ts"

/** How a stream stores the jobs of a queue. */
interface Retention {
  readonly storage: StorageType
  /** How long a job may wait and run, in milliseconds. */
  readonly maxAgeMs: number
  /** How many times a job is delivered; -1 means without limit. */
  readonly maxDeliver: number
  /** How many bytes the server reserves for waiting jobs. */
  readonly maxBytes: number
  /** How many jobs may wait and run. */
  readonly maxJobs: number
}

const interactive: Retention = {
  storage: StorageType.Memory,
  // the wait for a worker, then the longest answer: a worker confirms its job until the end
  maxAgeMs: 35 * 60_000,
  maxDeliver: maxDeliveries,
  maxBytes: 512 * 1024 * 1024,
  // a job stays in the stream while it runs: more than the slots of all workers
  maxJobs: 50_000
}

/** A task's job holds its id and at most a small request. It stays until a worker has ended it, however many workers are lost. */
const durable: Retention = {
  storage: StorageType.File,
  maxAgeMs: taskAgeMs,
  maxDeliver: -1,
  maxBytes: 128 * 1024 * 1024,
  maxJobs: 10_000
}

const retentionOf = (queue: QueueName): Retention => {
  if (queue === batchQueue) return { ...durable, maxAgeMs: batchAgeMs }
  return isTaskQueue(queue) ? durable : interactive
}

/**
 * Where a stream is stored. JetStream cannot change that later, so version 2 keeps its storage until it is removed. Until then it
 * reserves its bytes in memory, so a newer version's memory stream reserves none: only the server's memory limits it.
 */
const placeOf = (queue: QueueName, version: Version, replicas: number) => {
  const { maxBytes, storage } = retentionOf(queue)
  if (version === 2 || isTaskQueue(queue)) return { storage, max_bytes: maxBytes }
  return replicas > 1
    ? { storage: StorageType.File, max_bytes: maxBytes }
    : { storage: StorageType.Memory, max_bytes: -1 }
}

export const streamConfig = (queue: QueueName, version: Version, replicas: number): NamedStream => ({
  name: jobStream(queue, version),
  subjects: [jobStreamSubjects(queue, version)],
  retention: RetentionPolicy.Workqueue,
  ...placeOf(queue, version, replicas),
  discard: DiscardPolicy.New,
  num_replicas: replicas,
  max_msgs: retentionOf(queue).maxJobs,
  ...(isByOwner(queue)
    ? { max_msgs_per_subject: mostOfOwner(queue), discard_new_per_subject: true }
    : {}),
  // an inline body and its headers
  max_msg_size: inlineBodyBytes + 64 * 1024,
  max_age: nanos(retentionOf(queue).maxAgeMs),
  duplicate_window: nanos(2 * 60_000)
})

/** The durable consumer of one pool, stored like its stream. */
export const consumerConfig = (queue: QueueName, pool: string, version: Version): Partial<ConsumerConfig> => ({
  durable_name: pool,
  filter_subject: poolSubjects(queue, pool, version),
  ack_policy: AckPolicy.Explicit,
  ack_wait: nanos(ackWaitMs),
  max_deliver: retentionOf(queue).maxDeliver,
  max_ack_pending: -1,
  max_waiting: 4_096
})

/** Ensures that the stream of a queue and the consumer of one of its pools exist. */
export const provision = Effect.fn("JobStreams.provision")(
  function*(queue: QueueName, pool: string, version: Version) {
    const nats = yield* Nats
    const creates = yield* mayCreate
    const config = streamConfig(queue, version, yield* replicas)
    yield* attempt(async () => {
      const manager = await jetstreamManager(nats.connection, { checkAPI: false, timeout: 3_000 })
      if (creates) await ensureStream(manager, config)
      const info = manager.consumers.info(config.name, pool)
      if (await (creates ? orMissing(info) : info) !== undefined) return
      await manager.consumers.add(config.name, consumerConfig(queue, pool, version))
    })
  }
)

/** Provisions with retries until it succeeds: after an outage the servers may still be electing leaders. */
export const provisionPatiently = (queue: QueueName, pool: string, version: Version) =>
  provision(queue, pool, version).pipe(
    Effect.tapError((error) => {
      Metrics.update(Metrics.jetStreamErrors("provision"), 1)
      const stream = jobStream(queue, version)
      return Effect.logWarning("waiting for JetStream", { stream, pool, detail: error.message })
    }),
    Effect.retry(backOff)
  )
