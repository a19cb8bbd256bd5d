/** Writes the usage event of a task that has ended. */
import { Effect, Option, Schedule } from "effect"
import type { Usage } from "../contract/Usage.ts"
import { backOff, JetStreamFailed } from "../nats/JetStream.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"
import type { UsageEvent } from "../usage/UsageEvent.ts"
import type { UsageLog } from "../usage/UsageLog.ts"
import type { TaskRecord } from "./TaskRecord.ts"
import { hasEnded } from "./TaskState.ts"
import type { RecordStore } from "./RecordStore.ts"

export interface TaskMetering {
  readonly store: Pick<RecordStore, "claim" | "find">
  /** A workload, or another service's name. */
  readonly workload: string
  readonly log: UsageLog["Service"]
  /** The cost of this usage of a provider's model, in US dollars; `null` if unknown. */
  readonly cost: (
    model: string,
    usage: Usage | undefined,
    endpoint: { readonly name: string; readonly model: string }
  ) => number | null
}

/** The usage of a task that has ended, from its record alone; `undefined` if unknown. */
export type UsageOf = (task: TaskRecord) => Usage | undefined

const outcomes = { completed: "success", failed: "failure", cancelled: "cancelled" } as const

/** The data about a task, or about a line of a batch, from which its usage event is made. */
export interface Metered extends
  Pick<
    TaskRecord,
    | "id"
    | "tenant"
    | "operation"
    | "model"
    | "traceparent"
    | "status"
    | "created"
    | "updated"
    | "ended"
    | "providerTask"
    | "declinedBy"
  >
{
  readonly error: { readonly _tag: string } | null
}

/** The usage event, from stored data alone, so that every worker writes the same one. `undefined` if no provider was called. */
export const eventOf = (
  cost: TaskMetering["cost"],
  task: Metered,
  usage: Usage | undefined
): UsageEvent | undefined => {
  const { created, error, status, updated } = task
  const called = task.providerTask ?? task.declinedBy
  if (called === undefined || status === "queued" || status === "in_progress") return undefined
  const ended = task.ended ?? updated
  const traceId = TraceParent.traceIdOf(task.traceparent)
  return {
    id: task.id,
    time: ended,
    key: task.tenant,
    operation: task.operation,
    model: task.model,
    provider: called.provider,
    providerModel: called.model,
    usage: usage ?? null,
    costUsd: cost(task.model, usage, { name: called.provider, model: called.model }),
    outcome: outcomes[status],
    error: error?._tag ?? null,
    durationMs: Math.max(0, ended - created),
    firstByteMs: null,
    attempts: 1,
    ...(traceId === undefined ? {} : { traceId })
  }
}

const patience = backOff.pipe(Schedule.upTo({ duration: "10 seconds" }))

/** Reads the record of a task that has ended. Retries, because a NATS server that no longer leads may return an older record or none. */
const readEnded = (store: TaskMetering["store"], key: string) => {
  const read = Effect.map(store.find(key), Option.getOrUndefined)
  return read.pipe(
    Effect.filterOrFail(
      (task) => task !== undefined && hasEnded(task.status),
      () => new JetStreamFailed({ detail: "the end of the task's record cannot be read yet" })
    ),
    Effect.retry(patience),
    // the record of an old task has expired
    Effect.catch((error) => Effect.flatMap(read, (task) => task === undefined ? Effect.undefined : Effect.fail(error)))
  )
}

/** Writes an event, and returns when it is stored. */
export const storeEvent = (log: UsageLog["Service"], workload: string, event: UsageEvent): Effect.Effect<void> =>
  Effect.callback<void>((resume) => log.write(workload, event, () => resume(Effect.void)))

/** Writes a task's usage, and returns when it is stored. If the worker dies before that, the task is redelivered. */
export const writeUsage = Effect.fnUntraced(function*(
  { cost, log, store, workload }: TaskMetering,
  usageOf: UsageOf,
  key: string
) {
  const task = yield* readEnded(store, key)
  const event = task === undefined ? undefined : eventOf(cost, task, usageOf(task))
  if (event === undefined) return
  yield* storeEvent(log, workload, event)
})
