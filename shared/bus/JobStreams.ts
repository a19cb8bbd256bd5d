/**
 * The JetStream streams and consumers that hold jobs until a worker takes them: one stream per workload, one durable
 * consumer per pool.
 *
 * Interactive workloads are kept in memory: their clients are waiting on a socket, and a job that outlives them is of
 * no use. Video outlives its client and is kept on disk.
 */
import type { ConsumerConfig, JetStreamManager, StreamConfig } from "@nats-io/jetstream"
import {
  AckPolicy,
  DiscardPolicy,
  JetStreamApiError,
  jetstreamManager,
  RetentionPolicy,
  StorageType
} from "@nats-io/jetstream"
import { nanos } from "@nats-io/nats-core"
import { Config, Effect, Schedule, Schema } from "effect"
import type { Workload } from "../contract/Operation.ts"
import { ackWaitMs, inlineBodyBytes, maxDeliveries } from "./Limits.ts"
import { Nats } from "./Nats.ts"
import { jobStream, jobStreamSubjects, jobSubject } from "./Subjects.ts"

/** JetStream did not do what was asked. Worth another try: it may be electing a leader. */
export class JetStreamFailed extends Schema.TaggedError<JetStreamFailed>()("JetStreamFailed", {
  detail: Schema.String
}) {
  override get message() {
    return `JetStream: ${this.detail}`
  }
}

/** What the kinds of jobs differ in. */
interface Keeping {
  readonly storage: StorageType
  /** How long a job can wait, in milliseconds. */
  readonly maxAgeMs: number
  /** How often a job is given out; -1 is without end. */
  readonly maxDeliver: number
}

/** A client waits on its socket: what outlives the client or several workers is of no use. */
const interactive: Keeping = { storage: StorageType.Memory, maxAgeMs: 15 * 60_000, maxDeliver: maxDeliveries }

/** The client comes back later: the job stays until some worker has ended it, however many are lost on the way. */
const durable: Keeping = { storage: StorageType.File, maxAgeMs: 24 * 3_600_000, maxDeliver: -1 }

const keepingOf = (workload: Workload): Keeping => workload === "video" ? durable : interactive

/** Jobs that can wait in one stream. */
const maxJobs = 10_000

const streamConfig = (workload: Workload, replicas: number): Partial<StreamConfig> & { readonly name: string } => ({
  name: jobStream(workload),
  subjects: [jobStreamSubjects(workload)],
  retention: RetentionPolicy.Workqueue,
  storage: keepingOf(workload).storage,
  discard: DiscardPolicy.New,
  num_replicas: replicas,
  max_msgs: maxJobs,
  max_bytes: 512 * 1024 * 1024,
  // room for the headers beside an inline body
  max_msg_size: inlineBodyBytes + 64 * 1024,
  max_age: nanos(keepingOf(workload).maxAgeMs),
  duplicate_window: nanos(2 * 60_000)
})

const consumerConfig = (workload: Workload, pool: string): Partial<ConsumerConfig> => ({
  durable_name: pool,
  filter_subject: jobSubject(workload, pool),
  ack_policy: AckPolicy.Explicit,
  ack_wait: nanos(ackWaitMs),
  max_deliver: keepingOf(workload).maxDeliver,
  max_ack_pending: -1,
  max_waiting: 4_096
})

/** Asks JetStream for something, with its refusals as `JetStreamFailed`. */
export const attempt = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => new JetStreamFailed({ detail: cause instanceof Error ? cause.message : String(cause) })
  })

const isMissing = (cause: unknown): boolean => cause instanceof JetStreamApiError && cause.status === 404

export const ensureStream = async (
  manager: JetStreamManager,
  config: Partial<StreamConfig> & { readonly name: string }
) => {
  const known = await manager.streams.info(config.name).catch((cause) => {
    if (isMissing(cause)) return undefined
    throw cause
  })
  const made = known ?? await manager.streams.add(config)
  // an old server leaves out what it does not know, without a word
  if (made.config.retention !== config.retention || made.config.storage !== config.storage) {
    throw new Error(`stream ${config.name} exists with another retention or storage`)
  }
}

/**
 * Makes sure that the stream of a workload and the consumer of one of its pools exist.
 *
 * Reads `NATS_REPLICAS` (1 to 5, default 1). With `GATEWAY_PROVISION=false` nothing is created: it only checks, as in
 * production, where a provisioning job creates everything and services have no right to.
 */
export const provision = Effect.fn("JobStreams.provision")(function*(workload: Workload, pool: string) {
  const nats = yield* Nats
  const replicas = yield* Config.Int("NATS_REPLICAS").pipe(Config.withDefault(1))
  const mayCreate = yield* Config.Boolean("GATEWAY_PROVISION").pipe(Config.withDefault(true))
  yield* attempt(async () => {
    const manager = await jetstreamManager(nats.connection, { checkAPI: false, timeout: 3_000 })
    if (mayCreate) await ensureStream(manager, streamConfig(workload, replicas))
    await manager.consumers.info(jobStream(workload), pool).catch((cause) => {
      if (!mayCreate || !isMissing(cause)) throw cause
      return manager.consumers.add(jobStream(workload), consumerConfig(workload, pool))
    })
  })
})

/** Backing off from 50 ms to a second, without end: for what must come back before anything else can work. */
export const patiently = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")]).pipe(
  Schedule.jittered
)

/** The same, tried until it works: a server that has just come back may still be electing leaders. */
export const provisionPatiently = (workload: Workload, pool: string) =>
  provision(workload, pool).pipe(
    Effect.tapError((error) => Effect.logWarning("waiting for JetStream", { workload, pool, detail: error.message })),
    Effect.retry(patiently)
  )
