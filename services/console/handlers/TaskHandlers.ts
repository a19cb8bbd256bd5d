/**
 * Handlers of `/api/tasks`. Administrators do not read what clients asked and got: the console decrypts neither. Every
 * cancellation and deletion is written to the audit log.
 */
import { Clock, Context, DateTime, Duration, Effect, Layer, Option, Schedule, Semaphore } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { KeyAudit } from "../../../shared/keys/KeyAudit.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { backOff, whileJetStreamFails } from "../../../shared/nats/JetStream.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import { answerResult } from "../../../shared/tasks/answers/AnswerResult.ts"
import * as StoredTasks from "../../../shared/tasks/answers/StoredTasks.ts"
import * as TaskHints from "../../../shared/tasks/answers/TaskHints.ts"
import * as RecordStore from "../../../shared/tasks/RecordStore.ts"
import type { TaskRecord } from "../../../shared/tasks/TaskRecord.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import { CurrentAdmin } from "../api/Admin.ts"
import { ConsoleApi } from "../api/Api.ts"
import { type TaskQuery, TaskUnknown, type TaskView } from "../api/Tasks.ts"
import { orUnavailable } from "../access/Availability.ts"

/** How many tasks a page has, and how many records are read at most to find them. */
const shownTasks = 50
const mostRead = 500

/** How long keys may be listed, or a task's pages deleted. */
const whileListing = "30 seconds"

/** How long a request to JetStream is repeated, in milliseconds. */
const patienceMs = 2_000

/** A pause after a listing of all keys is this many times as long as the listing, which takes about a second for 100,000. */
const pauseFactor = 10

/** Lists all keys again only after a pause, because open pages ask for them every few seconds. */
const restrained = Effect.fnUntraced(function*<E>(list: Effect.Effect<ReadonlyArray<string>, E>) {
  const turn = yield* Semaphore.make(1)
  let known: ReadonlyArray<string> = []
  let knownUntil = 0
  return turn.withPermit(Effect.gen(function*() {
    if ((yield* Clock.currentTimeMillis) < knownUntil) return known
    const [took, keys] = yield* Effect.timed(list)
    known = keys
    knownUntil = (yield* Clock.currentTimeMillis) + pauseFactor * Duration.toMillis(took)
    return keys
  }))
})

/** The stored tasks. */
export class Tasks extends Context.Service<Tasks, {
  readonly stored: StoredTasks.StoredTasks
  readonly allKeys: ReturnType<StoredTasks.StoredTasks["keys"]>
  readonly find: RecordStore.RecordStore["find"]
}>()("services/console/Tasks") {
  static readonly layer = Layer.effect(
    Tasks,
    Effect.gen(function*() {
      const bucket = yield* openBucket(buckets.tasks).pipe(Effect.retry(whileJetStreamFails))
      const patience = backOff.pipe(Schedule.upTo({ duration: patienceMs }))
      const hints = TaskHints.make(yield* Nats)
      const records = RecordStore.make(bucket, patience, hints.give)
      const { free } = TaskKeys.make(bucket, records, patience)
      const remove = StoredTasks.removeFrom(bucket)
      const stored = StoredTasks.make({ keys: bucket.keys, find: records.find, cancel: records.cancel, free, remove }, patience)
      return { stored, allKeys: yield* restrained(stored.keys(StoredTasks.allRecords)), find: records.find }
    })
  )
}

const view = (
  { claims, created, ended, error, id, model, operation, pool, providerTask, request, result, status, ...task }:
    TaskRecord
): TaskView => ({
  ...{ id, operation, model, pool, status, claims },
  key: task.tenant,
  workload: request?.workload ?? null,
  error: error?._tag ?? null,
  provider: providerTask?.provider ?? null,
  createdAt: DateTime.makeUnsafe(created),
  endedAt: ended === null ? null : DateTime.makeUnsafe(ended),
  bytes: Option.getOrUndefined(answerResult(result))?.bytes ?? null,
  traceId: TraceParent.traceIdOf(task.traceparent) ?? null
})

const isWanted = ({ key, status }: TaskQuery) => (task: TaskRecord): boolean =>
  (key === undefined || task.tenant === key)
  && (status === undefined || task.status === status)

export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "tasks",
  Effect.fn(function*(handlers) {
    const { allKeys, find, stored } = yield* Tasks
    const keys = yield* KeyStore
    const audit = yield* KeyAudit

    const keyOf = Effect.fnUntraced(function*(id: string) {
      const key = yield* orUnavailable(stored.keyOf(id))
      return Option.isSome(key) ? key.value : yield* new TaskUnknown({ id })
    })
    const orUnknown = (id: string, task: Option.Option<TaskRecord>) =>
      Effect.fromOption(task, () => new TaskUnknown({ id }))

    /** Records a change, under the name of the key that created the task. */
    const record = Effect.fnUntraced(function*(action: "cancelled" | "deleted", { id, tenant }: TaskRecord) {
      const all = yield* orUnavailable(keys.list).pipe(Effect.orElseSucceed(() => []))
      const name = all.find((key) => key.id === tenant)?.name ?? ""
      yield* audit.taskChanged((yield* CurrentAdmin).name, { id: tenant, name }, action, id)
    })

    return handlers.handleAll({
      list: Effect.fnUntraced(function*({ query }) {
        const page = { after: query.after, limit: shownTasks, mostRead, isWanted: isWanted(query) }
        const { next, tasks } = yield* orUnavailable(
          Effect.flatMap(allKeys, (keys) => stored.page(keys, page)),
          whileListing
        )
        return { tasks: tasks.map(view), next: next ?? null }
      }),
      get: Effect.fnUntraced(function*({ params: { id } }) {
        const key = yield* keyOf(id)
        return view(yield* orUnknown(id, yield* orUnavailable(find(key))))
      }),
      cancel: Effect.fnUntraced(function*({ params: { id } }) {
        const key = yield* keyOf(id)
        const before = yield* orUnavailable(find(key))
        const task = yield* orUnknown(id, yield* orUnavailable(stored.cancel(key)))
        const isCancelled = task.status === "cancelled" && Option.exists(before, ({ status }) => status !== task.status)
        if (isCancelled) yield* record("cancelled", task)
        return view(task)
      }, Effect.uninterruptible),
      remove: Effect.fnUntraced(function*({ params: { id } }) {
        const key = yield* keyOf(id)
        const task = yield* orUnknown(id, yield* orUnavailable(stored.delete(key), whileListing))
        yield* record("deleted", task)
      }, Effect.uninterruptible)
    })
  })
)
