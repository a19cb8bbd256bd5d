/**
 * Finds the running processes of the gateway and their current work. Each process answers requests on one shared subject for
 * itself. Dead and frozen processes do not answer, and without requests there is no traffic.
 */
import { Clock, Context, Effect, Layer, Metric, Option, Schema } from "effect"
import { hostname } from "node:os"
import { Quota } from "../../contract/JobError.ts"
import { workloads } from "../../contract/Operation.ts"
import { attempt, type JetStreamFailed } from "../../nats/JetStream.ts"
import { Nats } from "../../nats/Nats.ts"
import { presenceSubject } from "../protocol/Subjects.ts"

/** A worker's load. */
const Work = Schema.Struct({
  workload: Schema.Literals(workloads),
  pool: Schema.String,
  /** Concurrent jobs: the maximum, and the current number. */
  slots: Schema.Int,
  inFlight: Schema.Int
})

/** An ingress's jobs in one pool. */
const Waiting = Schema.Struct({
  workload: Schema.Literals(workloads),
  pool: Schema.String,
  /** Not yet published; published but unclaimed; claimed by a worker. */
  waiting: Schema.Int,
  unclaimed: Schema.Int,
  running: Schema.Int
})

/** Whose calls to a target of a provider a worker delays or rejects; see `TargetDelay`. */
const Delay = Schema.Struct({
  provider: Schema.String,
  model: Schema.String,
  owner: Schema.NullOr(Schema.String),
  cause: Schema.Literals(["refusals", "failures"]),
  forMs: Schema.Finite,
  perMinute: Schema.NullOr(Schema.Finite),
  waiting: Schema.Int,
  quota: Schema.optionalKey(Quota)
})

export const ProcessState = Schema.Struct({
  /** Unique to this run of the process. */
  id: Schema.String,
  /** `ingress`, or a worker's workload. */
  service: Schema.String,
  host: Schema.String,
  pid: Schema.Int,
  /** Epoch milliseconds. */
  startedAt: Schema.Finite,
  /** `starting`: also after a reconnect, until the process has its queues again. `draining`: the process will end. */
  state: Schema.Literals(["starting", "ready", "draining"]),
  /** Workers only. */
  work: Schema.optionalKey(Work),
  /** Ingress only. */
  queues: Schema.optionalKey(Schema.Array(Waiting)),
  /** Workers only. */
  delays: Schema.optionalKey(Schema.Array(Delay)),
  /** The process's metrics about providers, by their names in `shared/telemetry`. */
  measures: Schema.Array(Schema.Struct({
    name: Schema.String,
    labels: Schema.Record(Schema.String, Schema.String),
    value: Schema.Finite
  }))
})
export type ProcessState = typeof ProcessState.Type

/** The part of a process's state that the service supplies. */
export interface Activity extends Pick<ProcessState, "service" | "work" | "queues" | "delays"> {
  readonly isReady: boolean
  readonly isDraining: boolean
}

const encode = Schema.encodeSync(Schema.fromJsonString(ProcessState))
const decode = Schema.decodeUnknownOption(Schema.fromJsonString(ProcessState))

/** The wait for answers ends after `stallMs` without a new one, and after `maxWaitMs` at the latest. */
const stallMs = 150
const maxWaitMs = 1_000

const measuresOf = (context: Context.Context<never>): ProcessState["measures"] =>
  Metric.snapshotUnsafe(context).flatMap(({ attributes, id, state, type }) => {
    if (!id.startsWith("gateway_provider_")) return []
    const value = type === "Counter" ? state.count : type === "Gauge" ? state.value : undefined
    return value === undefined ? [] : [{ name: id, labels: { ...attributes }, value: Number(value) }]
  })

export class Presence extends Context.Service<Presence, {
  /** Answers for this process until the layer's scope closes, also while it drains. */
  readonly answerWith: (activity: () => Activity) => Effect.Effect<void>
}>()("shared/bus/provision/Presence") {
  static readonly layer = Layer.effect(
    Presence,
    Effect.gen(function*() {
      const nats = yield* Nats
      const context = yield* Effect.context<never>()
      const startedAt = yield* Clock.currentTimeMillis
      const self = { id: nats.id, host: hostname(), pid: process.pid, startedAt }
      let activity: (() => Activity) | undefined

      const subscription = nats.subscribe(presenceSubject, (message) => {
        if (activity === undefined) return
        const { isDraining, isReady, ...rest } = activity()
        const state = isDraining ? "draining" : isReady ? "ready" : "starting"
        message.respond(encode({ ...self, ...rest, state, measures: measuresOf(context) }))
      })
      yield* Effect.addFinalizer(() => Effect.sync(() => subscription.unsubscribe()))
      return Presence.of({
        answerWith: (readActivity) => Effect.sync(() => void (activity = readActivity))
      })
    })
  )
}

/** The states of all processes that answer. */
export const askAll: Effect.Effect<ReadonlyArray<ProcessState>, JetStreamFailed, Nats> = Effect.flatMap(
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
