/** The reference of `/v1/tasks`. */
import { Schema } from "effect"
import { constant, EpochSeconds, field, JsonObject } from "../../../shared/contract/Fields.ts"
import { TaskStatus } from "../../../shared/contract/Operation.ts"
import * as Errors from "./Errors.ts"
import * as Headers from "./Headers.ts"
import { optionalQuery, parameter, type Route } from "./Route.ts"
import { events, json, ref } from "./Schemas.ts"

const Task = Schema.Struct({
  id: field(
    Schema.String,
    "Unique per task; the id of the response, if the request was for a response in the background."
  ),
  object: constant("task", "A task."),
  operation: field(Schema.String, "The operation of the request, such as `chat.completions`."),
  model: field(Schema.String, "The model of the request."),
  status: field(TaskStatus, "A task ends as `completed`, `failed` or `cancelled`."),
  created_at: field(EpochSeconds, "When it was created."),
  completed_at: field(Schema.NullOr(EpochSeconds), "When it ended."),
  expires_at: field(EpochSeconds, "When it is deleted: a day after its end."),
  url: field(Schema.NullOr(Schema.String), "The path of the answer, once the task is completed."),
  error: field(Schema.NullOr(JsonObject), "Why it failed, with the fields of an error's answer.")
})

const TaskList = Schema.Struct({
  object: constant("list", "A list of tasks."),
  data: field(Schema.Array(Task), "The latest first."),
  first_id: field(Schema.NullOr(Schema.String), "The id of the first task."),
  last_id: field(Schema.NullOr(Schema.String), "The id of the last task: `after` for the next page."),
  has_more: field(Schema.Boolean, "Whether there is another page.")
})

const DeletedTask = Schema.Struct({
  id: field(Schema.String, "The id of the task."),
  object: constant("task", "A task."),
  deleted: constant(true, "It no longer exists.")
})

export const schemas = { Task, TaskList, DeletedTask }

const id = "task_019b0a1f3c5e6d2f7a8b9c0d1e2f3a4b"
export const taskExample = {
  id,
  object: "task",
  operation: "chat.completions",
  model: "gpt-5",
  status: "completed",
  created_at: 1_760_000_000,
  completed_at: 1_760_000_042,
  expires_at: 1_760_086_442,
  url: `/v1/tasks/${id}/content`,
  error: null
}

const shared = {
  tag: "Tasks",
  key: "openai",
  dialect: "openai",
  path: "/v1/tasks/{task_id}",
  parameters: [{ ...parameter("path", "task_id", "The task's `id`."), example: id }],
  errors: [...Errors.of.keys, ...Errors.of.tasks, ...Errors.of.all]
} as const

export const routes: ReadonlyArray<Route> = [
  {
    ...shared,
    method: "get",
    path: "/v1/tasks",
    operationId: "tasks.list",
    summary: "List tasks",
    description:
      "The tasks of the key's owner: requests with `Prefer: respond-async`, and responses in the background.",
    parameters: [
      optionalQuery("limit", "How many tasks a page has at most. Default 20. Values above 100 count as 100."),
      optionalQuery("after", "The id of the last task of the page before.")
    ],
    responses: {
      200: {
        description: "A page of tasks",
        content: json(ref("TaskList"), {
          example: { object: "list", data: [taskExample], first_id: id, last_id: id, has_more: false }
        })
      }
    },
    errors: [...Errors.of.keys, ...Errors.of.itemPages, ...Errors.of.all]
  },
  {
    ...shared,
    method: "get",
    operationId: "tasks.get",
    summary: "Get a task",
    description: "Its status. `retry-after` gives the time to wait before the next request.",
    responses: {
      200: {
        description: "The task",
        headers: Headers.of.waiting,
        content: json(ref("Task"), { example: taskExample })
      }
    }
  },
  {
    ...shared,
    method: "delete",
    operationId: "tasks.delete",
    summary: "Delete a task",
    description: "Stops it if it runs, and deletes its request and its answer.",
    responses: {
      200: {
        description: "The task no longer exists",
        content: json(ref("DeletedTask"), { example: { id, object: "task", deleted: true } })
      }
    }
  },
  {
    ...shared,
    method: "post",
    path: `${shared.path}/cancel`,
    operationId: "tasks.cancel",
    summary: "Stop a task",
    description: "Stops the call to the provider. A task that has ended stays as it is.",
    responses: {
      200: {
        description: "The task",
        headers: Headers.of.waiting,
        content: json(ref("Task"), { example: { ...taskExample, status: "cancelled", url: null } })
      }
    }
  },
  {
    ...shared,
    method: "get",
    path: `${shared.path}/content`,
    operationId: "tasks.content",
    summary: "Get the answer of a task",
    description:
      "The answer with its status, as it would have come on the connection. If the task has failed, its error.",
    responses: { 200: { description: "The answer", content: { "*/*": { schema: {} } } } },
    errors: [...shared.errors, ...Errors.of.unfinished]
  },
  {
    ...shared,
    method: "get",
    path: `${shared.path}/events`,
    operationId: "tasks.events",
    summary: "Stream the answer of a task",
    description:
      "The events of an answer with `stream` while they are made, or again until an hour after the end. The `id` of each " +
      "is its number. If the task fails or is cancelled, the last event has the error.",
    parameters: [...shared.parameters, Headers.request("last-event-id")],
    responses: { 200: { description: "The events", content: events } },
    errors: [...shared.errors, ...Errors.of.storedStreams, ...Errors.of.eventPositions]
  }
]
