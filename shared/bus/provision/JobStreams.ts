/**
 * The JetStream streams and consumers that hold jobs until a worker takes them: one stream per workload, one durable
 * consumer per pool.
 *
 * Interactive workloads are kept in memory: their clients are waiting on a socket, and a job that outlives them is of
 * no use. Video outlives its client and is kept on disk.
 */
import type { ConsumerConfig } from "@nats-io/jetstream"
import { AckPolicy, DiscardPolicy, jetstreamManager, RetentionPolicy, StorageType } from "@nats-io/jetstream"
import { nanos } from "@nats-io/nats-core"
import { Effect, Metric } from "effect"
import type { Workload } from "../../contract/Operation.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import { ackWaitMs, inlineBodyBytes, maxDeliveries } from "../protocol/Timings.ts"
import {
  attempt,
  ensureStream,
  isMissing,
  mayCreate,
  type NamedStream,
  patiently,
  replicas
} from "../../nats/JetStream.ts"
import { Nats } from "../../nats/Nats.ts"
import { jobStream, jobStreamSubjects, jobSubject } from "../protocol/Subjects.ts"

/** What the kinds of jobs differ in. */
interface Keeping {
  readonly storage: StorageType
  /** How long a job can wait, in milliseconds. */
  readonly maxAgeMs: number
  /** How often a job is given out; -1 is without end. */
  readonly maxDeliver: number
  /** What the server sets aside for all that can wait. */
  readonly maxBytes: number
}

/** A client waits on its socket: what outlives the client or several workers is of no use. */
const interactive: Keeping = {
  storage: StorageType.Memory,
  maxAgeMs: 15 * 60_000,
  maxDeliver: maxDeliveries,
  maxBytes: 512 * 1024 * 1024
}

/**
 * The client comes back later: the job stays until some worker has ended it, however many are lost on the way. It is but
 * the id of a task.
 */
const durable: Keeping = {
  storage: StorageType.File,
  maxAgeMs: 24 * 3_600_000,
  maxDeliver: -1,
  maxBytes: 32 * 1024 * 1024
}

const keepingOf = (workload: Workload): Keeping => workload === "video" ? durable : interactive

/** Jobs that can wait in one stream. */
const maxJobs = 10_000

export const streamConfig = (workload: Workload, replicas: number): NamedStream => ({
  name: jobStream(workload),
  subjects: [jobStreamSubjects(workload)],
  retention: RetentionPolicy.Workqueue,
  storage: keepingOf(workload).storage,
  discard: DiscardPolicy.New,
  num_replicas: replicas,
  max_msgs: maxJobs,
  max_bytes: keepingOf(workload).maxBytes,
  // room for the headers beside an inline body
  max_msg_size: inlineBodyBytes + 64 * 1024,
  max_age: nanos(keepingOf(workload).maxAgeMs),
  duplicate_window: nanos(2 * 60_000)
})

export const consumerConfig = (workload: Workload, pool: string): Partial<ConsumerConfig> => ({
  durable_name: pool,
  filter_subject: jobSubject(workload, pool),
  ack_policy: AckPolicy.Explicit,
  ack_wait: nanos(ackWaitMs),
  max_deliver: keepingOf(workload).maxDeliver,
  max_ack_pending: -1,
  max_waiting: 4_096
})

/** Makes sure that the stream of a workload and the consumer of one of its pools exist. */
export const provision = Effect.fn("JobStreams.provision")(function*(workload: Workload, pool: string) {
  const nats = yield* Nats
  const creates = yield* mayCreate
  const config = streamConfig(workload, yield* replicas)
  yield* attempt(async () => {
    const manager = await jetstreamManager(nats.connection, { checkAPI: false, timeout: 3_000 })
    if (creates) await ensureStream(manager, config)
    await manager.consumers.info(jobStream(workload), pool).catch((cause) => {
      if (!creates || !isMissing(cause)) throw cause
      return manager.consumers.add(jobStream(workload), consumerConfig(workload, pool))
    })
  })
})

/** Tried until it works: a server that has just come back may still be electing leaders. */
export const provisionPatiently = (workload: Workload, pool: string) =>
  provision(workload, pool).pipe(
    Effect.tapError((error) =>
      Effect.andThen(
        Metric.update(Metrics.jetStreamErrors("provision"), 1),
        Effect.logWarning("waiting for JetStream", { workload, pool, detail: error.message })
      )
    ),
    Effect.retry(patiently)
  )
