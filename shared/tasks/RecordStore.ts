/** Stores task records in a bucket. Changes them only by compare-and-set, according to `TaskState.ts`. */
import { Clock, Effect, Option, Result, type Schedule, Schema, Semaphore } from "effect"
import type { JetStreamFailed } from "../nats/JetStream.ts"
import type { Revisions } from "../nats/Modify.ts"
import * as TaskRecord from "./TaskRecord.ts"
import * as TaskState from "./TaskState.ts"

/** An event was refused. `unknown`: the task does not exist or has expired. See `TaskState.ts` for the others. */
export class TaskRefused extends Schema.TaggedError<TaskRefused>()("TaskRefused", {
  refusal: Schema.Literals(["ended", "fenced", "unknown", "unreadable"])
}) {}

/** A task that this worker has claimed. */
export interface ClaimedTask {
  /** The record after this worker's last write. */
  readonly current: () => TaskRecord.TaskRecord
  /** Fails with `TaskRefused` if this worker has lost the task: all work on it must stop. */
  readonly record: (event: HolderEvent) => Effect.Effect<TaskRecord.TaskRecord, TaskRefused | JetStreamFailed>
  /** Why this worker has lost the task; `undefined` if it has not, as far as it knows. */
  readonly refusal: () => TaskRefused["refusal"] | undefined
}

/** An event that only the task's worker may record. */
type HolderEvent = DistributiveOmit<Extract<TaskState.TaskEvent, { readonly holder: unknown }>, "holder">
type DistributiveOmit<A, Keys extends PropertyKey> = A extends unknown ? Omit<A, Keys> : never

export interface RecordStore {
  /** Stores a new task; returns the existing task if the key is taken. */
  readonly create: (
    key: string,
    task: TaskRecord.TaskRecord
  ) => Effect.Effect<TaskRecord.TaskRecord, JetStreamFailed>
  /** Reads a task. If its job has expired, ends it as failed first. `None` if the record is unknown or unreadable. */
  readonly find: (key: string) => Effect.Effect<Option.Option<TaskRecord.TaskRecord>, JetStreamFailed>
  /** Cancels a task. Returns it: cancelled now, or already ended. */
  readonly cancel: (key: string) => Effect.Effect<TaskRecord.TaskRecord, TaskRefused | JetStreamFailed>
  /** Asks the worker to end the work early. Returns the task, which may have ended already. */
  readonly stop: (key: string) => Effect.Effect<TaskRecord.TaskRecord, TaskRefused | JetStreamFailed>
  /** Claims the task for a worker. */
  readonly claim: (key: string, worker: string) => Effect.Effect<ClaimedTask, TaskRefused | JetStreamFailed>
}

interface Stored {
  readonly key: string
  readonly task: TaskRecord.TaskRecord
  readonly revision: number
}

/** `patience`: how operations that fail with `JetStreamFailed` are retried. `onEnd` gets the key of each task that ends. */
export const make = (
  bucket: Revisions,
  patience: Schedule.Schedule<unknown>,
  onEnd: (key: string) => void = () => undefined
): RecordStore => {
  const again = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.retry(effect, patience)
  const refuse = (refusal: TaskRefused["refusal"]) => Effect.fail(new TaskRefused({ refusal }))

  const load = Effect.fnUntraced(function*(key: string) {
    const found = Option.getOrUndefined(yield* again(bucket.getRevision(key)))
    if (found === undefined) return yield* refuse("unknown")
    const task = Option.getOrUndefined(TaskRecord.decode(found.value))
    return task === undefined ? yield* refuse("unreadable") : { key, task, revision: found.revision }
  })

  /** Applies an event and writes the record. If another write came first, starts again from the new record. */
  const change = (
    { key, revision, task }: Stored,
    event: TaskState.TaskEvent
  ): Effect.Effect<Stored, TaskRefused | JetStreamFailed> =>
    Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const next = TaskState.transition(task, event, now)
      if (Result.isFailure(next)) return yield* new TaskRefused({ refusal: next.failure })
      // every try writes the same text, by which `update` recognises its own write if the answer was lost
      const written = yield* again(bucket.update(key, TaskRecord.encode(next.success), revision))
      if (Option.isSome(written)) {
        if (TaskState.hasEnded(next.success.status)) onEnd(key)
        return { key, task: next.success, revision: written.value }
      }
      return yield* change(yield* load(key), event)
    })

  /** Reads a task, and ends it if it is abandoned. */
  const look = Effect.fnUntraced(function*(key: string) {
    const stored = yield* load(key)
    if (!TaskState.isAbandoned(stored.task, yield* Clock.currentTimeMillis)) return stored.task
    const { task } = yield* Effect.catchTag(change(stored, { event: "expired" }), "TaskRefused", () => load(key))
    return task
  })

  const find = (key: string) =>
    look(key).pipe(
      Effect.asSome,
      Effect.catchTag("TaskRefused", () => Effect.succeedNone)
    )

  /** Applies the event unless the task has ended. */
  const end = (event: "cancelled" | "stopping") =>
    Effect.fnUntraced(function*(key: string) {
      const stored = yield* load(key)
      if (TaskState.hasEnded(stored.task.status)) return stored.task
      return yield* change(stored, { event }).pipe(
        Effect.catchTag("TaskRefused", () => load(key)),
        Effect.map(({ task }) => task)
      )
    })

  return {
    create: Effect.fnUntraced(function*(key, task) {
      if (yield* again(bucket.create(key, TaskRecord.encode(task)))) return task
      return Option.getOrElse(yield* find(key), () => task)
    }),
    find,
    cancel: end("cancelled"),
    stop: end("stopping"),
    claim: Effect.fnUntraced(function*(key, worker) {
      let stored = yield* change(yield* load(key), { event: "claimed", worker })
      let refusal: TaskRefused["refusal"] | undefined
      const holder: TaskRecord.Holder = { worker, claim: stored.task.claims }
      const turn = yield* Semaphore.make(1)
      return {
        current: () => stored.task,
        refusal: () => refusal,
        record: (event) =>
          turn.withPermit(Effect.suspend(() => change(stored, { ...event, holder } as TaskState.TaskEvent))).pipe(
            Effect.tapErrorTag("TaskRefused", (error) => Effect.sync(() => void (refusal = error.refusal))),
            Effect.map((changed) => {
              stored = changed
              return changed.task
            })
          )
      }
    })
  }
}
