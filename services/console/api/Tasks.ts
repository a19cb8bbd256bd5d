/** `/api/tasks`: requests in the background and batches, without what their clients asked and got. */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import { batchStatuses } from "../../../shared/batches/BatchRecord.ts"
import { PoolName, TaskStatus, workloads } from "../../../shared/contract/Operation.ts"
import { KeyId } from "../../../shared/usage/UsageEvent.ts"
import { Admin } from "./Admin.ts"
import { maxIdLength, NotFound, Unavailable, withMessage } from "./Errors.ts"

export class TaskUnknown extends Schema.TaggedError<TaskUnknown>()("TaskUnknown", {
  ...withMessage("Task not found: it does not exist, has expired, or was deleted"),
  id: Schema.String
}, { httpApiStatus: 404 }) {}

/** The batch has not ended, so it cannot be deleted. */
export class BatchRunning extends Schema.TaggedError<BatchRunning>()(
  "BatchRunning",
  withMessage("The batch has not ended. Cancel it first"),
  { httpApiStatus: 409 }
) {}

const BatchView = Schema.Struct({
  status: Schema.Literals(batchStatuses),
  /** Its requests, and how many have an answer or have failed. */
  total: Schema.Int,
  completed: Schema.Int,
  failed: Schema.Int,
  /** The ids of the files of answers and of errors. */
  output: Schema.NullOr(Schema.String),
  errors: Schema.NullOr(Schema.String)
})

export const TaskView = Schema.Struct({
  /** The id of the task, of the response in the background, or of the batch. */
  id: Schema.String,
  /** The id of the key that created it. */
  key: Schema.String,
  operation: Schema.String,
  /** Empty for a batch whose requests name their models. */
  model: Schema.String,
  /** `null` for a batch. */
  workload: Schema.NullOr(Schema.Literals(workloads)),
  pool: PoolName,
  status: TaskStatus,
  /** The kind of the error, or of the first mistake in the file of a batch, if it failed. */
  error: Schema.NullOr(Schema.String),
  /** The provider whose last call may be billed; `null` if there was none. */
  provider: Schema.NullOr(Schema.String),
  /** How many times workers have claimed it. */
  claims: Schema.Int,
  createdAt: Schema.DateTimeUtcFromString,
  endedAt: Schema.NullOr(Schema.DateTimeUtcFromString),
  /** The size of the answer, once it is complete. */
  bytes: Schema.NullOr(Schema.Int),
  /** `null` if it is not a batch. */
  batch: Schema.NullOr(BatchView),
  /** The trace of the request that created it. */
  traceId: Schema.NullOr(Schema.String)
})
export type TaskView = typeof TaskView.Type

export const TaskQuery = Schema.Struct({
  key: Schema.optionalKey(KeyId),
  status: Schema.optionalKey(TaskStatus),
  /** `next` of the page before. */
  after: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(maxIdLength)))
})
export type TaskQuery = typeof TaskQuery.Type

const TaskPage = Schema.Struct({
  tasks: Schema.Array(TaskView),
  /** `after` for the next page; `null` if there is none. */
  next: Schema.NullOr(Schema.String)
})
export type TaskPage = typeof TaskPage.Type

const byId = { params: { id: Schema.String.check(Schema.isPattern(/^\w{1,128}$/)) } }
const error = [TaskUnknown, NotFound, Unavailable] as const

const path = "/api/tasks/:id"

export class TasksApi extends HttpApiGroup.make("tasks")
  .add(
    HttpApiEndpoint.get("list", "/api/tasks", { query: TaskQuery, success: TaskPage, error: Unavailable })
      .annotate(
        OpenApi.Summary,
        "List the tasks and batches of all keys or of one, the latest first: up to 50 of the next 500, until `next` is null"
      ),
    HttpApiEndpoint.get("get", path, { ...byId, success: TaskView, error })
      .annotate(OpenApi.Summary, "Get a task"),
    HttpApiEndpoint.post("cancel", `${path}/cancel`, { ...byId, success: TaskView, error })
      .annotate(OpenApi.Summary, "Stop a task, or ask a batch to stop. Ended ones stay as they are"),
    HttpApiEndpoint.delete("remove", path, { ...byId, error: [...error, BatchRunning] })
      .annotate(
        OpenApi.Summary,
        "Stop a task, and delete it with its request and answer; or delete a batch that has ended. Its files stay"
      )
  )
  .middleware(Admin)
{}
