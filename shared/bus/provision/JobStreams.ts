/**
 * The JetStream streams and consumers that store jobs until a worker takes them: one stream per workload, one durable consumer
 * per pool.
 *
 * Interactive jobs are stored in memory, since a job is useless once its client's socket is gone. Video jobs outlive their
 * client and are stored on disk.
 */
import type { ConsumerConfig } from "@nats-io/jetstream"
import { AckPolicy, DiscardPolicy, jetstreamManager, RetentionPolicy, StorageType } from "@nats-io/jetstream"
import { nanos } from "@nats-io/nats-core"
import { Effect } from "effect"
import type { Workload } from "../../contract/Operation.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import { ackWaitMs, inlineBodyBytes, maxDeliveries } from "../protocol/Timings.ts"
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
import { jobStream, jobStreamSubjects, jobSubject } from "../protocol/Subjects.ts"

/** How a stream stores the jobs of a workload. */
interface Retention {
  readonly storage: StorageType
  /** How long a job may wait, in milliseconds. */
  readonly maxAgeMs: number
  /** How many times a job is delivered; -1 means without limit. */
  readonly maxDeliver: number
  /** How many bytes the server reserves for waiting jobs. */
  readonly maxBytes: number
}

const interactive: Retention = {
  storage: StorageType.Memory,
  maxAgeMs: 15 * 60_000,
  maxDeliver: maxDeliveries,
  maxBytes: 512 * 1024 * 1024
}

/** The job, which is only the id of a task, stays until a worker has ended it, however many workers are lost. */
const durable: Retention = {
  storage: StorageType.File,
  maxAgeMs: 24 * 3_600_000,
  maxDeliver: -1,
  maxBytes: 32 * 1024 * 1024
}

const retentionOf = (workload: Workload): Retention => workload === "video" ? durable : interactive

/** How many jobs may wait in one stream. */
const maxJobs = 10_000

export const streamConfig = (workload: Workload, replicas: number): NamedStream => ({
  name: jobStream(workload),
  subjects: [jobStreamSubjects(workload)],
  retention: RetentionPolicy.Workqueue,
  storage: retentionOf(workload).storage,
  discard: DiscardPolicy.New,
  num_replicas: replicas,
  max_msgs: maxJobs,
  max_bytes: retentionOf(workload).maxBytes,
  // an inline body and its headers
  max_msg_size: inlineBodyBytes + 64 * 1024,
  max_age: nanos(retentionOf(workload).maxAgeMs),
  duplicate_window: nanos(2 * 60_000)
})

export const consumerConfig = (workload: Workload, pool: string): Partial<ConsumerConfig> => ({
  durable_name: pool,
  filter_subject: jobSubject(workload, pool),
  ack_policy: AckPolicy.Explicit,
  ack_wait: nanos(ackWaitMs),
  max_deliver: retentionOf(workload).maxDeliver,
  max_ack_pending: -1,
  max_waiting: 4_096
})

/** Ensures that the stream of a workload and the consumer of one of its pools exist. */
export const provision = Effect.fn("JobStreams.provision")(function*(workload: Workload, pool: string) {
  const nats = yield* Nats
  const creates = yield* mayCreate
  const config = streamConfig(workload, yield* replicas)
  yield* attempt(async () => {
    const manager = await jetstreamManager(nats.connection, { checkAPI: false, timeout: 3_000 })
    if (creates) await ensureStream(manager, config)
    const info = manager.consumers.info(jobStream(workload), pool)
    if (await (creates ? orMissing(info) : info) !== undefined) return
    await manager.consumers.add(jobStream(workload), consumerConfig(workload, pool))
  })
})

/** Retries until it succeeds: after an outage the server may still be electing leaders. */
export const provisionPatiently = (workload: Workload, pool: string) =>
  provision(workload, pool).pipe(
    Effect.tapError((error) => {
      Metrics.update(Metrics.jetStreamErrors("provision"), 1)
      return Effect.logWarning("waiting for JetStream", { workload, pool, detail: error.message })
    }),
    Effect.retry(backOff)
  )
