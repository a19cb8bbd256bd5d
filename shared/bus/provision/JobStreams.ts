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
import { Config, Effect, Metric, Schedule, Schema } from "effect"
import { atLeast } from "../../contract/Fields.ts"
import type { Workload } from "../../contract/Operation.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import { ackWaitMs, inlineBodyBytes, maxDeliveries } from "../protocol/Timings.ts"
import { Nats } from "../../nats/Nats.ts"
import { jobStream, jobStreamSubjects, jobSubject } from "../protocol/Subjects.ts"

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

/** Asks JetStream for something, with its refusals as `JetStreamFailed`. */
export const attempt = <A>(run: () => Promise<A>) =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => new JetStreamFailed({ detail: cause instanceof Error ? cause.message : String(cause) })
  })

/** Whether a refusal says that there is no such thing. */
export const isMissing = (cause: unknown): boolean => cause instanceof JetStreamApiError && cause.status === 404

export type NamedStream = Partial<StreamConfig> & { readonly name: string }

export const ensureStream = async (manager: JetStreamManager, config: NamedStream) => {
  const known = await manager.streams.info(config.name).catch((cause) => {
    if (isMissing(cause)) return undefined
    throw cause
  })
  const made = known ?? await manager.streams.add(config)
  // an old server leaves out what it does not know, without a word
  if (isOtherKind(config, made.config)) throw otherKind(config.name)
}

/** What a stream is made for can never be changed. */
export const isOtherKind = (wanted: Partial<StreamConfig>, { retention, storage }: StreamConfig): boolean =>
  (wanted.retention ?? retention) !== retention || (wanted.storage ?? storage) !== storage
export const otherKind = (name: string): Error => new Error(`stream ${name} exists with another retention or storage`)

/** `NATS_REPLICAS`: how many servers keep each stream, bucket and store, 1 to 5. */
export const replicas = Config.schema(atLeast(1), "NATS_REPLICAS").pipe(Config.withDefault(1))

/**
 * With `GATEWAY_PROVISION=false` a service creates nothing and only opens what is there, as in production, where
 * `Provision.ts` is run before it and it has no right to.
 */
export const mayCreate = Config.Boolean("GATEWAY_PROVISION").pipe(Config.withDefault(true))

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

/** Backing off from 50 ms to a second, without end: for what must come back before anything else can work. */
export const patiently = Schedule.min([Schedule.exponential("50 millis"), Schedule.spaced("1 second")]).pipe(
  Schedule.jittered
)

/** What fails for a moment while leaders are elected is not worth a word: after so many tries a second or two have passed. */
const toldAtTry = 6

/** For `Effect.retry`: as long as it is JetStream that fails. Whoever still waits after a while says for what. */
export const whileJetStreamFails = {
  while: (error: { readonly _tag: string }): boolean => error._tag === "JetStreamFailed",
  schedule: patiently.pipe(
    Schedule.tap(({ attempt, input }) =>
      attempt === toldAtTry
        ? Effect.logWarning("waiting for JetStream", { detail: input instanceof Error ? input.message : String(input) })
        : Effect.void
    )
  )
}

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
