/** Writes the usage of a video task when it has ended. */
import { Effect, Option, Schedule } from "effect"
import { backOff, JetStreamFailed } from "../../shared/nats/JetStream.ts"
import { hasEnded, type VideoTask } from "../../shared/tasks/VideoTask.ts"
import * as TraceParent from "../../shared/telemetry/TraceParent.ts"
import type { VideoTasks } from "../../shared/tasks/VideoTasks.ts"
import type { UsageEvent } from "../../shared/usage/UsageEvent.ts"
import type { Metering } from "../../shared/worker/Meter.ts"

export type TaskMetering = Pick<Metering, "log" | "cost">

const outcomes = { completed: "success", failed: "failure", cancelled: "cancelled" } as const

/** The event, from the record alone, so that every worker writes the same. `undefined` if no provider was called. */
const eventOf = (cost: Metering["cost"], task: VideoTask): UsageEvent | undefined => {
  const { created, error, providerTask, result, status, updated } = task
  if (providerTask === null || status === "queued" || status === "in_progress") return undefined
  const ended = task.ended ?? updated
  const traceId = TraceParent.traceIdOf(task.traceparent)
  const usage = result === null ? undefined : { inputTokens: 0, outputTokens: 0, seconds: result.metadata.duration }
  return {
    id: task.id,
    time: ended,
    key: task.tenant,
    operation: task.operation,
    model: task.model,
    provider: providerTask.provider,
    providerModel: providerTask.model,
    usage: usage ?? null,
    costUsd: cost(task.model, usage, { name: providerTask.provider, model: providerTask.model }),
    outcome: outcomes[status],
    error: error?._tag ?? null,
    durationMs: Math.max(0, ended - created),
    firstByteMs: null,
    attempts: 1,
    ...(traceId === undefined ? {} : { traceId })
  }
}

const patience = backOff.pipe(Schedule.upTo({ duration: "10 seconds" }))

/** The record of a task that has ended. A server that was the leader until a moment ago may answer with an older one, or none. */
const readEnded = (tasks: VideoTasks["Service"], id: string) => {
  const read = Effect.map(tasks.find(id), Option.getOrUndefined)
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

/** Returns when the event is stored. If the worker dies before, the task is redelivered to another one. */
export const writeUsage = Effect.fnUntraced(
  function*(tasks: VideoTasks["Service"], { cost, log }: TaskMetering, id: string) {
    const task = yield* readEnded(tasks, id)
    const event = task === undefined ? undefined : eventOf(cost, task)
    if (event === undefined) return
    yield* Effect.callback<void>((resume) => log.write("video", event, () => resume(Effect.void)))
  }
)
