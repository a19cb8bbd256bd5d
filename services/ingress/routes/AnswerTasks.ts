/**
 * Requests whose answers outlive the connection: their creation, for `background` or `Prefer: respond-async`, and `/v1/tasks`, where
 * clients list, get, cancel and delete them.
 */
import { Clock, Effect, type Option } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { randomBytes } from "node:crypto"
import { taskQueueOf } from "../../../shared/bus/protocol/Subjects.ts"
import { InternalError, InvalidRequest } from "../../../shared/contract/JobError.ts"
import type { Owner } from "../../../shared/contract/Owner.ts"
import { ofSuffix } from "../../../shared/contract/ResponseId.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import { Owners } from "../../../shared/records/Owners.ts"
import { AnswerTasks, keptForMs } from "../../../shared/tasks/AnswerTasks.ts"
import type { TaskRecord } from "../../../shared/tasks/TaskRecord.ts"
import { hasEnded } from "../../../shared/tasks/TaskState.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import { type RequestError, TaskNotCompleted, TaskNotFound } from "../errors/IngressError.ts"
import type { Exchange } from "../exchange/Exchange.ts"
import { tasksPath } from "../paths/RouteTemplate.ts"
import { authenticate } from "../request/Authentication.ts"
import * as BackgroundResponse from "./BackgroundResponse.ts"
import type { AdmittedRequest } from "./Operations.ts"
import { respond } from "./Respond.ts"

const dialect = "openai"

/** The polling interval for clients, in seconds. */
const pollAgain = { "retry-after": "2" }

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1_000)

/** 32 hexadecimal digits, in the order of their times. */
const newSuffix = (now: number): string => now.toString(16).padStart(12, "0") + randomBytes(10).toString("hex")

const view = (task: TaskRecord): object => {
  const { created, ended, error, id, model, operation, status, updated } = task
  return {
    id,
    object: "task",
    operation,
    model,
    status,
    created_at: seconds(created),
    completed_at: ended === null ? null : seconds(ended),
    expires_at: seconds((ended ?? updated) + keptForMs),
    url: status === "completed" ? `${tasksPath}/${id}/content` : null,
    error: error === null ? null : ErrorEnvelope.toFields(error)
  }
}

type ForwardedHeaders = Readonly<Record<string, string>> | undefined

/** Creates the task of an admitted request, and answers with it. */
export const makeCreate = Effect.map(AnswerTasks, (tasks) => {
  const create = Effect.fnUntraced(function*(admitted: AdmittedRequest, forwarded: ForwardedHeaders) {
    const { body, headers, model, operation, outlives, owner, pool, tenant, traceparent, workload } = admitted
    const queue = taskQueueOf(workload)
    if (owner === undefined || queue === undefined) return yield* new InternalError()
    const suffix = newSuffix(yield* Clock.currentTimeMillis)
    return yield* tasks.create({
      id: outlives === "background" ? ofSuffix(suffix) : `task_${suffix}`,
      operation: operation.name,
      ...{ owner, queue, tenant, model, pool, traceparent, body },
      request: {
        workload,
        contentType: headers["content-type"] ?? "application/json",
        ...(forwarded === undefined ? {} : { headers: forwarded })
      }
    })
  })

  return (admitted: AdmittedRequest, forwarded: ForwardedHeaders, exchange: Exchange): void => {
    exchange.run(create(admitted, forwarded), (task) => {
      // the estimated tokens count; the client's connection ends
      admitted.settle?.(undefined)
      const json = { "content-type": "application/json" }
      if (admitted.outlives === "background") {
        return exchange.send(
          { status: 200, headers: json },
          JSON.stringify(BackgroundResponse.view(task, admitted.body))
        )
      }
      const location = `${tasksPath}/${task.id}`
      const headers = { ...json, ...pollAgain, location, "preference-applied": "respond-async" }
      exchange.send({ status: 202, headers }, JSON.stringify(view(task)))
    })
  }
})

interface Asked {
  readonly owner: Owner
  readonly id: string
  readonly query: URLSearchParams
}

const notFound = new TaskNotFound()
const maxTasks = 100
const tasksByDefault = 20

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
  const keys = yield* KeyRing
  const owners = yield* Owners
  const tasks = yield* AnswerTasks

  const orNotFound = <A>(found: Option.Option<A>) => Effect.fromOption(found, () => notFound)
  const find = Effect.fnUntraced(function*({ id, owner }: Asked) {
    const task = yield* orNotFound(yield* tasks.find(owner, id))
    yield* TraceParent.link(task.traceparent)
    return task
  })

  const show = (task: TaskRecord) =>
    HttpServerResponse.jsonUnsafe(view(task), hasEnded(task.status) ? undefined : { headers: pollAgain })

  const list = Effect.fnUntraced(function*({ owner, query }: Asked) {
    const limit = Number(query.get("limit") ?? tasksByDefault)
    if (!Number.isInteger(limit) || limit < 1 || limit > maxTasks) {
      return yield* InvalidRequest.at("limit", `must be a whole number from 1 to ${maxTasks}`)
    }
    const { hasMore, tasks: page } = yield* tasks.list(owner, limit, query.get("after") ?? undefined)
    return HttpServerResponse.jsonUnsafe({
      object: "list",
      data: page.map(view),
      first_id: page[0]?.id ?? null,
      last_id: page.at(-1)?.id ?? null,
      has_more: hasMore
    })
  })

  const cancel = ({ id, owner }: Asked) => Effect.map(Effect.flatMap(tasks.cancel(owner, id), orNotFound), show)

  const remove = Effect.fnUntraced(function*({ id, owner }: Asked) {
    if (!(yield* tasks.delete(owner, id))) return yield* notFound
    return HttpServerResponse.jsonUnsafe({ id, object: "task", deleted: true })
  })

  /** The answer as the client would have got it on its connection. */
  const content = Effect.fnUntraced(function*(asked: Asked) {
    const { error, id, status } = yield* find(asked)
    if (error !== null) return yield* error
    if (status !== "completed") return yield* new TaskNotCompleted({ status })
    const answer = yield* orNotFound(yield* tasks.answer(asked.owner, id))
    return HttpServerResponse.stream(answer.bytes, {
      status: answer.status,
      contentType: answer.contentType,
      headers: answer.headers
    })
  })

  const add = (
    method: "GET" | "POST" | "DELETE",
    suffix: string,
    name: string,
    answer: (asked: Asked) => Effect.Effect<HttpServerResponse.HttpServerResponse, RequestError>
  ) =>
    router.add(
      method,
      `${tasksPath}${suffix}`,
      ({ headers, url }: HttpServerRequest.HttpServerRequest) =>
        respond(`tasks.${name}`, dialect, (record) =>
          Effect.gen(function*() {
            const key = yield* authenticate(keys, headers, dialect)
            record.setKey(key.id)
            const { id = "" } = yield* HttpRouter.params
            const owner = owners.known(key.owner)
            const { searchParams: query } = new URL(url, "http://gateway")
            if (owner !== undefined) return yield* answer({ owner, id, query })
            return suffix === ""
              ? HttpServerResponse.jsonUnsafe({
                object: "list",
                data: [],
                first_id: null,
                last_id: null,
                has_more: false
              })
              : yield* notFound
          }))
    )

  yield* add("GET", "", "list", list)
  yield* add("GET", "/:id", "get", (asked) => Effect.map(find(asked), show))
  yield* add("DELETE", "/:id", "delete", remove)
  yield* add("POST", "/:id/cancel", "cancel", cancel)
  yield* add("GET", "/:id/content", "content", content)
}))
