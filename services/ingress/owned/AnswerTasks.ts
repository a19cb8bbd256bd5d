/**
 * Requests whose answers outlive the connection: their creation, for `background`, `Prefer: respond-async` or an idempotency key,
 * and `/v1/tasks`, where clients list, get, cancel and delete them.
 */
import { Clock, Effect, Option } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { InternalError } from "../../../shared/contract/JobError.ts"
import type { Owner } from "../../../shared/contract/Owner.ts"
import { ofSuffix } from "../../../shared/contract/ResponseId.ts"
import { newSuffix } from "../../../shared/tasks/answers/AnswerTaskId.ts"
import { answerResult } from "../../../shared/tasks/answers/AnswerResult.ts"
import { AnswerTasks, keptForMs } from "../../../shared/tasks/answers/AnswerTasks.ts"
import type { TaskRecord } from "../../../shared/tasks/TaskRecord.ts"
import { hasEnded } from "../../../shared/tasks/TaskState.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import { AnswerNotKept, TaskNotFound } from "../errors/IngressError.ts"
import type { Exchange } from "../exchange/Exchange.ts"
import { tasksPath } from "../paths/RouteTemplate.ts"
import * as BackgroundResponse from "./BackgroundResponse.ts"
import type { AdmittedRequest } from "../request/AdmittedRequest.ts"
import { keyReused, replayed } from "../request/IdempotencyKey.ts"
import type { Outlives } from "../request/Outlives.ts"
import * as AnswerLog from "./AnswerLog.ts"
import { addAll, type Asked, limitIn, routesOf, toPage } from "./OwnedRoutes.ts"

/** The largest answer that later requests with the same idempotency key get, in bytes. */
const keptBytes = 64 * 1024 * 1024

/** The polling interval for clients, in seconds. */
export const pollAgain = { "retry-after": "2" }

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1_000)

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

/** A request whose answer is made by a task. */
interface Waiting extends Pick<AdmittedRequest, "streams"> {
  readonly owner: Owner
  readonly outlives: Outlives
  readonly body: Uint8Array
}

const json = { "content-type": "application/json" }

/** Creates a task for each admitted request, or joins the task of an earlier request, and answers with it. */
export const serve = Effect.map(AnswerTasks, (tasks) => {
  const createFor = Effect.fnUntraced(function*(admitted: AdmittedRequest, forwarded: ForwardedHeaders) {
    const { body, headers, model, operation, outlives, owner, pool, streams, tenant, tokens, traceparent, workload } =
      admitted
    if (owner === undefined || outlives === undefined) return yield* new InternalError()
    const suffix = newSuffix(yield* Clock.currentTimeMillis)
    const task = yield* keyReused(tasks.create({
      id: outlives.by === "background" ? ofSuffix(suffix) : `task_${suffix}`,
      // with only an idempotency key, the client waits for the answer
      ...(outlives.by === "idempotency-key" ? {} : { announcedAs: outlives.by === "background" ? "response" : "task" }),
      operation: operation.name,
      ...{ owner, tenant, model, pool, traceparent, body },
      request: {
        workload,
        streams,
        tokens,
        contentType: headers["content-type"] ?? "application/json",
        ...(forwarded === undefined ? {} : { headers: forwarded })
      }
    }, outlives.keyed))
    return { task, owner, outlives }
  })

  const answer = (
    task: TaskRecord,
    { body, outlives: { by }, owner, streams }: Waiting,
    exchange: Exchange
  ): void => {
    if (by === "respond-async") {
      const location = `${tasksPath}/${task.id}`
      const headers = { ...json, ...pollAgain, location, "preference-applied": "respond-async" }
      return exchange.send({ status: 202, headers }, JSON.stringify(view(task)))
    }
    if (by === "background" && !streams) {
      // the task's state when it was created
      const response = BackgroundResponse.view({ ...task, status: "queued", error: null, ended: null }, body)
      return exchange.send({ status: 200, headers: json }, JSON.stringify(response))
    }
    AnswerLog.relay(tasks, { owner, task, streams }, exchange)
  }

  return {
    /** The task that the idempotency key of a request stands for. */
    join: (owner: Owner, { keyed }: Outlives) =>
      keyed === undefined ? Effect.succeedNone : keyReused(tasks.join(owner, keyed)),
    /** Answers with the task of an earlier request. */
    answer: (task: TaskRecord, waiting: Waiting, exchange: Exchange): void => {
      if (hasEnded(task.status)) {
        const { bytes = 0 } = Option.getOrUndefined(answerResult(task.result)) ?? {}
        if (waiting.outlives.by === "idempotency-key" && bytes > keptBytes) return exchange.fail(new AnswerNotKept())
        const limits = exchange.record.answerHeaders
        exchange.record.answerHeaders = () => ({ ...limits?.(), ...replayed })
      }
      answer(task, waiting, exchange)
    },
    create: (admitted: AdmittedRequest, forwarded: ForwardedHeaders, exchange: Exchange): void => {
      exchange.run(createFor(admitted, forwarded), ({ outlives, owner, task }) => {
        admitted.releaseBody()
        answer(task, { owner, outlives, body: admitted.body, streams: admitted.streams }, exchange)
      })
    }
  }
})

const notFound = new TaskNotFound()
const noTasks = HttpServerResponse.jsonUnsafe(toPage([], false))

export const layer = HttpRouter.use(Effect.fnUntraced(function*(router) {
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
    const limit = yield* limitIn(query)
    const { next, tasks: page } = yield* tasks.list(owner, limit, query.get("after") ?? undefined)
    return HttpServerResponse.jsonUnsafe(toPage(page.map(view), next !== undefined))
  })

  const cancel = ({ id, owner }: Asked) => Effect.map(Effect.flatMap(tasks.cancel(owner, id), orNotFound), show)

  const remove = Effect.fnUntraced(function*({ id, owner }: Asked) {
    if (!(yield* tasks.delete(owner, id))) return yield* notFound
    return HttpServerResponse.jsonUnsafe({ id, object: "task", deleted: true })
  })

  /** The answer as the client would have got it on its connection. */
  const content = Effect.fnUntraced(function*(asked: Asked) {
    const task = yield* find(asked)
    const error = AnswerLog.errorOf(task)
    if (error !== undefined) return yield* error
    const { contentType, headers, status } = yield* orNotFound(yield* tasks.head(asked.owner, task.id))
    return HttpServerResponse.stream(AnswerLog.bytes(tasks, asked.owner, task), { status, contentType, headers })
  })

  const events = (asked: Asked) =>
    Effect.flatMap(find(asked), (task) => AnswerLog.answer(tasks, asked, task, "last-event-id"))

  const route = routesOf({ path: tasksPath, name: "tasks", orElse: notFound })
  yield* addAll(router, [
    route("GET", "", "list", list, Effect.succeed(noTasks)),
    route("GET", "/:id", "get", (asked) => Effect.map(find(asked), show)),
    route("DELETE", "/:id", "delete", remove),
    route("POST", "/:id/cancel", "cancel", cancel),
    route("GET", "/:id/content", "content", content),
    route("GET", "/:id/events", "events", events)
  ])
}))
