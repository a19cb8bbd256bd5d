/**
 * Lists, finds, cancels and deletes the stored tasks of all owners by the keys of their records, without access to the contents of
 * requests and answers.
 */
import { Effect, Option, type Schedule } from "effect"
import type { JetStreamFailed } from "../../nats/JetStream.ts"
import type { Bucket } from "../../nats/KeyValue.ts"
import type { Revisions } from "../../nats/Modify.ts"
import type { RecordStore } from "../RecordStore.ts"
import type { TaskRecord } from "../TaskRecord.ts"
import { isTaskId, suffixOf } from "./AnswerTaskId.ts"
import * as TaskBytes from "../TaskBytes.ts"
import { answerResult } from "./AnswerResult.ts"
import type { TaskKeys } from "./TaskKeys.ts"

/** The keys of all records. */
export const allRecords = "*.*"

/** Maximum number of records that are read concurrently. */
const readAtOnce = 16

export interface PageRequest {
  readonly limit: number
  /** The last id of the previous page. */
  readonly after: string | undefined
  readonly isWanted?: (task: TaskRecord) => boolean
  /** Maximum number of records to read, after which the page ends even if it is not full. Default: no maximum. */
  readonly mostRead?: number
}

export interface TaskPage {
  readonly tasks: ReadonlyArray<TaskRecord>
  /** `after` for the next page; `undefined` if there is none. */
  readonly next: string | undefined
}

export interface StoredTasks {
  /** The keys that match a filter, the latest tasks first. */
  readonly keys: (filter: string) => Effect.Effect<ReadonlyArray<string>, JetStreamFailed>
  /** A page of the tasks with these keys, in the order of the keys. */
  readonly page: (keys: ReadonlyArray<string>, page: PageRequest) => Effect.Effect<TaskPage, JetStreamFailed>
  /** The key of the task with this id. `None` if the id is unknown. */
  readonly keyOf: (id: string) => Effect.Effect<Option.Option<string>, JetStreamFailed>
  /** Cancels a task unless it has ended, and returns it. `None` if there is none. */
  readonly cancel: (key: string) => Effect.Effect<Option.Option<TaskRecord>, JetStreamFailed>
  /** Stops a task, and deletes it with its request and answer. Returns its last record; `None` if there is none. */
  readonly delete: (key: string) => Effect.Effect<Option.Option<TaskRecord>, JetStreamFailed>
}

export const idOf = (key: string): string => key.slice(key.indexOf(".") + 1)

/** Access to the stored records. */
export interface Place extends Pick<Bucket, "keys">, Pick<RecordStore, "cancel" | "find">, Pick<TaskKeys, "free"> {
  /** Removes a task and its pages. `key`: of the task's record. */
  readonly remove: (key: string, task: TaskRecord) => Effect.Effect<void, JetStreamFailed>
}

/** Removes the record first: without it no client finds the pages. */
export const removeFrom = (
  bucket: Revisions & Pick<Bucket, "purge">,
  patience: Schedule.Schedule<unknown>
): Place["remove"] =>
  Effect.fnUntraced(function*(key, task) {
    const purged = yield* Effect.retry(bucket.purge(key), patience)
    yield* Effect.retry(bucket.purge(`${key}.>`), patience)
    // only one of several concurrent deletions has removed the record; if its confirmation is lost, the bytes count until they expire
    const { bytes = 0 } = Option.getOrUndefined(answerResult(task.result)) ?? {}
    if (purged > 0) yield* TaskBytes.free(bucket, patience, key, task, bytes)
  })

export const make = (
  place: Place,
  patience: Schedule.Schedule<unknown>
): StoredTasks => {
  const again = <A>(effect: Effect.Effect<A, JetStreamFailed>) => Effect.retry(effect, patience)

  const cancel = (key: string) =>
    place.cancel(key).pipe(
      Effect.asSome,
      Effect.catchTag("TaskRefused", () => Effect.succeedNone)
    )

  return {
    keys: (filter) =>
      Effect.map(again(place.keys(filter)), (keys) =>
        keys.map((key) => ({ key, suffix: suffixOf(key) }))
          .toSorted((one, other) => one.suffix < other.suffix ? 1 : -1)
          .map(({ key }) => key)),
    page: Effect.fnUntraced(function*(all, { after, isWanted = () => true, limit, mostRead = Infinity }) {
      const keys = after === undefined ? all : all.filter((key) => suffixOf(key) < suffixOf(after))
      const tasks: Array<TaskRecord> = []
      let read = 0
      while (read < keys.length && read < mostRead && tasks.length <= limit) {
        const some = keys.slice(read, Math.min(read + limit, mostRead))
        const found = yield* Effect.forEach(some, place.find, { concurrency: readAtOnce })
        tasks.push(...found.flatMap((one) => Option.toArray(Option.filter(one, isWanted))))
        read += some.length
      }
      if (tasks.length > limit) return { tasks: tasks.slice(0, limit), next: tasks[limit - 1]?.id }
      const last = keys[read - 1]
      return { tasks, next: read < keys.length && last !== undefined ? idOf(last) : undefined }
    }),
    keyOf: (id) =>
      isTaskId(id)
        ? Effect.map(again(place.keys(`*.${id}`)), ([key]) => Option.fromUndefinedOr(key))
        : Effect.succeedNone,
    cancel,
    delete: Effect.fnUntraced(function*(key) {
      const task = yield* cancel(key)
      if (Option.isNone(task)) return task
      const { binding } = task.value
      if (binding !== undefined) yield* place.free(binding, task.value.id)
      yield* place.remove(key, task.value)
      return task
    })
  }
}
