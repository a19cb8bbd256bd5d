/**
 * Runs one delivery of a task in a worker: claims the task, does its work, records the end and writes the usage.
 *
 * While the work runs, the worker renews its claim. A refused renewal means that another worker has the task or a client has
 * cancelled it, and the work stops.
 */
import { Cause, Clock, Effect, Option, Schema } from "effect"
import type { PulledJob } from "../bus/worker/JobSource.ts"
import { InternalError, type JobError, PoisonJob } from "../contract/JobError.ts"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import * as Attributes from "../telemetry/Attributes.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as Span from "../telemetry/Span.ts"
import * as TraceParent from "../telemetry/TraceParent.ts"
import type { TaskRecord } from "./TaskRecord.ts"
import { hasEnded, isPoison, type Settlement, settlementOf } from "./TaskState.ts"
import type { ClaimedTask, TaskRefused } from "./RecordStore.ts"
import { type TaskMetering, type UsageOf, writeUsage } from "./TaskUsage.ts"

/** The work may not begin yet; the task returns to its queue for `retryAfterMs` milliseconds. */
export class TaskDeferred extends Schema.TaggedError<TaskDeferred>()("TaskDeferred", { retryAfterMs: Schema.Finite }) {}

/** Why work stops without having failed: the record refuses the worker, cannot be read or written, or the work may not begin. */
type Interruption = TaskRefused | JetStreamFailed | TaskDeferred
export type Failure = JobError | Interruption

const interruptions: ReadonlyArray<Failure["_tag"]> = ["TaskRefused", "JetStreamFailed", "TaskDeferred"]
export const isInterruption = (error: Failure): error is Interruption => interruptions.includes(error._tag)

/** Reports the progress in percent, and any state that the workload stores about the work. The next renewal writes both. */
export type Report = (progress: number, state?: unknown) => void

/** What a workload does with its tasks. */
export interface TaskWork {
  /**
   * Does the work of a claimed task and returns the result for the record. An earlier worker may have begun it: see `resumption`.
   * Interrupted if the task is cancelled or this worker loses it.
   */
  readonly perform: (
    task: ClaimedTask,
    report: Report,
    job: PulledJob
  ) => Effect.Effect<unknown, Failure>
  /** Stops a cancelled task at its provider. May run repeatedly: every worker that finds the task cancelled does this. */
  readonly stop: (task: TaskRecord) => Effect.Effect<void, Failure>
  /** The key of the task's record. */
  readonly keyOf: (job: PulledJob) => string
  readonly usageOf: UsageOf
  /** After how many losses of workers in a row, without progress in between, the task fails. Default: as for jobs. */
  readonly maxLosses?: number
  /** For work that meters itself: waits until the usage is stored. Returns `false` if the work did not run in this worker. */
  readonly meter?: (job: PulledJob) => Effect.Effect<boolean>
  /** Announces the end of a task. May run repeatedly. */
  readonly announce?: (task: TaskRecord, job: PulledJob) => Effect.Effect<void, JetStreamFailed>
}

export interface Dependencies extends Pick<TaskMetering, "store" | "workload"> {
  /** Absent if the tasks themselves call no provider. */
  readonly metering?: Pick<TaskMetering, "log" | "cost">
  readonly work: TaskWork
  /** This worker's id on the bus. */
  readonly worker: string
}

/** The interval between renewals of the claim, in milliseconds: the time until a cancellation is noticed. */
const renewEveryMs = 500

/** The time limit for a worker to release its task, in milliseconds. */
const releaseWithinMs = 2_000

const release = (task: ClaimedTask): Effect.Effect<void> =>
  task.record({ event: "released" }).pipe(Effect.timeout(releaseWithinMs), Effect.ignore)

/** What the work has reported since the last renewal. */
interface Progress {
  percent: number
  state: unknown
}

/** Renews the claim until a renewal is refused. */
const renewClaim = (task: ClaimedTask, progress: Progress): Effect.Effect<never, Interruption> =>
  Effect.forever(
    Effect.andThen(
      Effect.sleep(renewEveryMs),
      Effect.suspend(() => {
        const { percent, state } = progress
        // once: the record keeps it
        progress.state = undefined
        return task.record({ event: "renewed", progress: percent, ...(state === undefined ? {} : { state }) })
      })
    )
  )

const stopCancelled = Effect.fnUntraced(function*({ store, work }: Dependencies, job: PulledJob) {
  const task = Option.getOrUndefined(yield* store.find(work.keyOf(job)))
  if (task?.status === "cancelled") yield* work.stop(task)
})

/** How a delivery ended. `gone`: the task has no record, so there is nothing to meter or announce. */
type End = Settlement | "gone"

/** Handles a failure of the work, and decides what the queue does with the delivery. */
const recover = (
  dependencies: Dependencies,
  job: PulledJob,
  task: ClaimedTask | undefined,
  cause: Cause.Cause<Failure>
): Effect.Effect<End, Failure> => {
  const { id, publishedAt } = job
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (error === undefined && Cause.hasInterruptsOnly(cause)) return Effect.interrupt
  switch (error?._tag) {
    case "JetStreamFailed":
      return Effect.logWarning("task returned to its queue", { id, detail: error.message }).pipe(
        // an unreleased task would count as a loss of its worker
        Effect.andThen(task === undefined ? Effect.void : release(task)),
        Effect.as("later")
      )
    case "TaskDeferred": {
      const settlement = { afterMs: error.retryAfterMs }
      return task === undefined ? Effect.succeed(settlement) : Effect.as(task.record({ event: "deferred" }), settlement)
    }
    case "TaskRefused":
      return Effect.flatMap(Clock.currentTimeMillis, (now): Effect.Effect<End, Failure> => {
        const settlement = settlementOf(error.refusal, now - publishedAt)
        if (settlement === "done" && error.refusal === "unknown") return Effect.succeed("gone")
        return settlement === "done"
          ? Effect.as(stopCancelled(dependencies, job), settlement)
          : Effect.succeed(settlement)
      })
    default: {
      const ours = error === undefined
      const outcome = ours ? new InternalError() : error
      return Effect.gen(function*() {
        if (ours) yield* Effect.logError("task failed by an internal error", { id }, cause)
        if (task !== undefined) yield* task.record({ event: "failed", error: outcome })
        return "done" as const
      })
    }
  }
}

const refusePoison = Effect.fnUntraced(function*({ workload }: Dependencies, task: TaskRecord) {
  Metrics.update(Metrics.poisonJobs(workload, task.pool), 1)
  yield* Effect.logError("task failed: its workers were lost while running it", { id: task.id })
  return yield* new PoisonJob()
})

const perform = (dependencies: Dependencies, job: PulledJob, task: ClaimedTask): Effect.Effect<End, Failure> => {
  const progress: Progress = { percent: 0, state: undefined }
  const report: Report = (percent, state = progress.state) => {
    progress.percent = percent
    progress.state = state
  }
  const work = Effect.suspend((): Effect.Effect<unknown, Failure> =>
    isPoison(task.current(), dependencies.work.maxLosses)
      ? refusePoison(dependencies, task.current())
      : dependencies.work.perform(task, report, job)
  ).pipe(Effect.flatMap((result) => task.record({ event: "completed", result })))
  return Effect.raceFirst(work, renewClaim(task, progress)).pipe(
    Effect.as("done" as const),
    Effect.onInterrupt(() => release(task)),
    Effect.catchCause((cause) => recover(dependencies, job, task, cause))
  )
}

/** Writes the usage of a task: through the work itself if it ran here, otherwise from the record, as after the loss of a worker. */
const meter = Effect.fnUntraced(function*(dependencies: Dependencies, job: PulledJob) {
  const { metering, store, work: { keyOf, meter, usageOf }, workload } = dependencies
  if (metering === undefined || (meter !== undefined && (yield* meter(job)))) return
  yield* writeUsage({ ...metering, store, workload }, usageOf, keyOf(job))
})

/** Announces the end of a task. Runs after each delivery that settles the task, so that no end is left out. */
const announce = Effect.fnUntraced(function*({ store, work }: Dependencies, job: PulledJob) {
  if (work.announce === undefined) return
  const task = Option.getOrUndefined(yield* store.find(work.keyOf(job)))
  if (task !== undefined && hasEnded(task.status)) yield* work.announce(task, job)
})

export const runTask = (dependencies: Dependencies, job: PulledJob): Effect.Effect<Settlement> =>
  Effect.flatMap(Clock.currentTimeMillis, (begun) => {
    let isLate = false
    return dependencies.store.claim(dependencies.work.keyOf(job), dependencies.worker).pipe(
      Effect.tapErrorTag("TaskRefused", ({ refusal }) =>
        Effect.sync(() => {
          // a copy of the job: JetStream delivers the original again until its worker has written the usage
          isLate = refusal === "ended" && job.delivery === 1
        })),
      Effect.flatMap((task) => perform(dependencies, job, task)),
      // the claim was refused, or the end could not be written
      Effect.catchCause((cause) => recover(dependencies, job, undefined, cause)),
      Effect.tap((end) => end === "done" && !isLate ? meter(dependencies, job) : Effect.void),
      Effect.tap((end) => end === "done" ? announce(dependencies, job) : Effect.void),
      Effect.map((end): Settlement => end === "gone" ? "done" : end),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.interrupt
          : Effect.as(Effect.logWarning("task returned to its queue", { id: job.id }, cause), "later" as const)
      ),
      Span.around(`process ${job.subject}`, { kind: "consumer", ...TraceParent.asParent(job.traceparent) }, (span) => {
        Attributes.pulled(job)(span)
        span.attribute(Attributes.name.queueMs, Math.max(0, begun - job.publishedAt))
      })
    )
  })
