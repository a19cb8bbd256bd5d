/**
 * Handlers of `/api/tasks`. Administrators do not read what clients asked and got: the console decrypts neither. Every
 * cancellation and deletion is written to the audit log.
 */
import { DateTime, Effect, Option, Struct } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { type BatchStatus, isBatchId } from "../../../shared/batches/BatchRecord.ts"
import { batchOf } from "../../../shared/batches/BatchState.ts"
import { KeyAudit } from "../../../shared/keys/KeyAudit.ts"
import { KeyStore } from "../../../shared/keys/KeyStore.ts"
import { sameTime } from "../../../shared/tasks/answers/AnswerTaskId.ts"
import { answerResult } from "../../../shared/tasks/answers/AnswerResult.ts"
import type { TaskRecord } from "../../../shared/tasks/TaskRecord.ts"
import { hasEnded } from "../../../shared/tasks/TaskState.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import { KeyTeams } from "../../../shared/usage/KeyTeams.ts"
import { CurrentAdmin, CurrentScope } from "../api/Admin.ts"
import { ConsoleApi } from "../api/Api.ts"
import { BatchRunning, type TaskQuery, TaskUnknown, type TaskView } from "../api/Tasks.ts"
import { orUnavailable } from "../access/Availability.ts"
import { keysWithin } from "../access/Scopes.ts"
import { handleAll } from "../access/Narrowed.ts"
import { Tasks } from "./Tasks.ts"

/** Tasks per page, and the maximum number of records to read to find them. */
const shownTasks = 50
const mostRead = 500

/** Timeout for listing keys, and for deleting a task's pages. */
const whileListing = "30 seconds"

/** The status to show for an ended batch. The status of its task is `completed` even if the batch failed. */
const endOf: { readonly [Status in BatchStatus]?: TaskView["status"] } = {
  failed: "failed",
  expired: "failed",
  cancelled: "cancelled"
}

const view = (task: TaskRecord): TaskView => {
  const { created, ended, error, providerTask, request, result, tenant, traceparent } = task
  const batch = isBatchId(task.id) ? Option.getOrUndefined(batchOf(task)) : undefined
  return {
    ...Struct.pick(task, ["id", "operation", "model", "pool", "claims"]),
    key: tenant,
    workload: request?.workload ?? null,
    status: (batch && endOf[batch.status]) ?? task.status,
    error: error?._tag ?? batch?.mistakes[0]?.code ?? null,
    provider: providerTask?.provider ?? null,
    createdAt: DateTime.makeUnsafe(created),
    endedAt: ended === null ? null : DateTime.makeUnsafe(ended),
    bytes: Option.getOrUndefined(answerResult(result))?.bytes ?? null,
    batch: batch === undefined ? null : {
      status: batch.status,
      total: batch.request.total,
      ...Struct.pick(batch.progress, ["completed", "failed", "output", "errors"])
    },
    traceId: TraceParent.traceIdOf(traceparent) ?? null
  }
}

const isWanted = ({ key, status }: TaskQuery) => (task: TaskRecord): boolean =>
  (key === undefined || task.tenant === key)
  && (status === undefined || view(task).status === status)

/** Whether the task was cancelled, or a batch stopped early. */
const isStopped = ({ status, stopping }: TaskRecord): boolean => status === "cancelled" || stopping !== undefined

export const layer = HttpApiBuilder.group(
  ConsoleApi,
  "tasks",
  Effect.fn(function*(handlers) {
    const { allKeys, find, stored } = yield* Tasks
    const keys = yield* KeyStore
    const audit = yield* KeyAudit
    const teamsOf = yield* KeyTeams

    /** Whether the key that created a task is within the scope of the request. */
    const isWithinScope = Effect.gen(function*() {
      const scope = yield* CurrentScope
      const isWithin = keysWithin(scope, scope.isWhole ? [] : yield* orUnavailable(keys.list), teamsOf)
      return ({ tenant }: TaskRecord) => isWithin(tenant)
    })
    /** A task within the scope of the request, and the key of its record. */
    const findTask = Effect.fnUntraced(function*(id: string) {
      const key = yield* orUnavailable(stored.keyOf(id))
      if (Option.isNone(key)) return yield* new TaskUnknown({ id })
      const task = Option.filter(yield* orUnavailable(find(key.value)), yield* isWithinScope)
      return { key: key.value, task: yield* orUnknown(id, task) }
    })
    const orUnknown = (id: string, task: Option.Option<TaskRecord>) =>
      Effect.fromOption(task, () => new TaskUnknown({ id }))

    /** Records a change, under the name of the key that created the task. */
    const record = Effect.fnUntraced(function*(action: "cancelled" | "deleted", { id, tenant }: TaskRecord) {
      const all = yield* orUnavailable(keys.list).pipe(Effect.orElseSucceed(() => []))
      const { name = "", team = teamsOf(tenant)[0] ?? null } = all.find((key) => key.id === tenant) ?? {}
      yield* audit.taskChanged((yield* CurrentAdmin).name, { id: tenant, name, team }, action, id)
    })

    return handleAll("tasks", handlers, {
      list: Effect.fnUntraced(function*({ query }) {
        const isWithin = yield* isWithinScope
        const isShown = isWanted(query)
        const page = {
          after: query.after,
          limit: shownTasks,
          mostRead,
          isWanted: (task: TaskRecord) => isWithin(task) && isShown(task)
        }
        const { next, tasks } = yield* orUnavailable(
          Effect.flatMap(allKeys, (keys) => stored.page(keys, page)),
          whileListing
        )
        const isShownId = tasks.some(({ id }) => id === next)
        return { tasks: tasks.map(view), next: next === undefined ? null : isShownId ? next : sameTime(next) }
      }),
      get: Effect.fnUntraced(function*({ params: { id } }) {
        return view((yield* findTask(id)).task)
      }),
      cancel: Effect.fnUntraced(function*({ params: { id } }) {
        const { key, task: before } = yield* findTask(id)
        const task = yield* orUnknown(id, yield* orUnavailable(stored.cancel(key)))
        if (isStopped(task) && !isStopped(before)) yield* record("cancelled", task)
        return view(task)
      }, Effect.uninterruptible),
      remove: Effect.fnUntraced(function*({ params: { id } }) {
        const { key, task: found } = yield* findTask(id)
        if (isBatchId(id) && !hasEnded(found.status)) return yield* new BatchRunning()
        const task = yield* orUnknown(id, yield* orUnavailable(stored.delete(key), whileListing))
        yield* record("deleted", task)
      }, Effect.uninterruptible)
    })
  })
)
