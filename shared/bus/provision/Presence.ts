/**
 * Which processes there are and what they are doing, for whoever asks: a question on one subject that every process
 * answers for itself. Nothing is sent while nobody asks, and who is dead or frozen says nothing.
 */
import { Clock, Context, Effect, Layer, Metric, Option, Schema } from "effect"
import { hostname } from "node:os"
import { workloads } from "../../contract/Operation.ts"
import { attempt, type JetStreamFailed } from "../../nats/JetStream.ts"
import { Nats } from "../../nats/Nats.ts"
import { presenceSubject } from "../protocol/Subjects.ts"

/** What a worker works on. */
const Work = Schema.Struct({
  workload: Schema.Literals(workloads),
  pool: Schema.String,
  /** Jobs that it takes at once, and those that it has. */
  slots: Schema.Int,
  inFlight: Schema.Int
})

/** What the clients of an ingress wait for in one pool. */
const Waiting = Schema.Struct({
  workload: Schema.Literals(workloads),
  pool: Schema.String,
  /** Not published yet; published, but not taken by a worker; in the hands of one. */
  waiting: Schema.Int,
  unclaimed: Schema.Int,
  running: Schema.Int
})

export const ProcessState = Schema.Struct({
  /** Unique to the process and its start. */
  id: Schema.String,
  /** `ingress`, or a worker's workload. */
  service: Schema.String,
  host: Schema.String,
  pid: Schema.Int,
  /** Epoch milliseconds. */
  startedAt: Schema.Finite,
  /** `starting` until it was ready once, `draining` when it is not ready any more. */
  state: Schema.Literals(["starting", "ready", "draining"]),
  /** There for workers. */
  work: Schema.optionalKey(Work),
  /** There for an ingress. */
  queues: Schema.optionalKey(Schema.Array(Waiting)),
  /** What it has counted of its providers, by the metrics' names in `shared/telemetry`. */
  measures: Schema.Array(Schema.Struct({
    name: Schema.String,
    labels: Schema.Record(Schema.String, Schema.String),
    value: Schema.Finite
  }))
})
export type ProcessState = typeof ProcessState.Type

/** What a process says of itself at the moment of asking. */
export interface Activity extends Pick<ProcessState, "service" | "work" | "queues"> {
  readonly isReady: boolean
}

const encode = Schema.encodeSync(Schema.fromJsonString(ProcessState))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(ProcessState))

/** Answers are waited for until there was none for `stallMs`, and at most `maxWaitMs`. */
const stallMs = 150
const maxWaitMs = 1_000

const measuresOf = (context: Context.Context<never>): ProcessState["measures"] =>
  Metric.snapshotUnsafe(context).flatMap(({ attributes, id, state, type }) => {
    if (!id.startsWith("gateway_provider_")) return []
    const value = type === "Counter" ? state.count : type === "Gauge" ? state.value : undefined
    return value === undefined ? [] : [{ name: id, labels: { ...attributes }, value: Number(value) }]
  })

export class Presence extends Context.Service<Presence, {
  /** Answers for this process from now on, until the layer's scope closes: while it drains, too. */
  readonly tell: (activity: () => Activity) => Effect.Effect<void>
}>()("shared/bus/Presence") {
  static readonly layer = Layer.effect(
    Presence,
    Effect.gen(function*() {
      const nats = yield* Nats
      const context = yield* Effect.context<never>()
      const startedAt = yield* Clock.currentTimeMillis
      const self = { id: nats.id, host: hostname(), pid: process.pid, startedAt }
      let activity: (() => Activity) | undefined
      let wasReady = false

      yield* Effect.acquireRelease(
        Effect.sync(() =>
          nats.subscribe(presenceSubject, (message) => {
            if (activity === undefined) return
            const { isReady, ...rest } = activity()
            wasReady ||= isReady
            const state = isReady ? "ready" : wasReady ? "draining" : "starting"
            message.respond(encode({ ...self, ...rest, state, measures: measuresOf(context) }))
          })
        ),
        (subscription) => Effect.sync(() => subscription.unsubscribe())
      )
      return Presence.of({
        tell: (tellActivity) =>
          Effect.sync(() => {
            activity = tellActivity
          })
      })
    })
  )
}

/** Every process that answers. */
export const ask: Effect.Effect<ReadonlyArray<ProcessState>, JetStreamFailed, Nats> = Effect.flatMap(
  Nats,
  (nats) =>
    attempt(async () => {
      const answers = await nats.connection.requestMany(presenceSubject, "", {
        strategy: "stall",
        stall: stallMs,
        maxWait: maxWaitMs
      })
      const processes: Array<ProcessState> = []
      for await (const answer of answers) processes.push(...Option.toArray(decode(answer.string())))
      return processes
    })
)
