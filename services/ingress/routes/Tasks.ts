/**
 * The routes of durable tasks: operations of the kind `task` create them; clients get, download and cancel them by id below
 * the operation's path.
 */
import { Clock, Effect, Exit, Layer, Option } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { hash } from "node:crypto"
import { InvalidRequest, type Unavailable } from "../../../shared/contract/JobError.ts"
import type { Operation } from "../../../shared/contract/Operation.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { type VideoTaskView, videoTypes } from "../../../shared/contract/operations/VideoGenerations.ts"
import { SignedUrl } from "../../../shared/files/SignedUrl.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import { siblingId } from "../../../shared/tasks/TaskRecord.ts"
import { hasEnded, statusOf } from "../../../shared/tasks/TaskState.ts"
import { keptForMs, TaskStore } from "../../../shared/tasks/TaskStore.ts"
import { type Records, Tasks } from "../../../shared/tasks/Tasks.ts"
import { videoResult } from "../../../shared/tasks/VideoResult.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import { authenticate } from "../request/Authentication.ts"
import { answerRange } from "../answer/RangeResponse.ts"
import { idempotencyKey } from "../request/IdempotencyKey.ts"
import { DecodeTurns } from "../request/DecodeTurns.ts"
import type { Exchange } from "../exchange/Exchange.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import * as IngressError from "../errors/IngressError.ts"
import type { AdmittedRequest } from "../request/AdmittedRequest.ts"
import * as Operations from "./Operations.ts"
import type { RequestRecord } from "../record/RequestRecord.ts"
import { respond } from "../answer/Respond.ts"
import { pollAgain } from "../owned/AnswerTasks.ts"
import * as TaskId from "./TaskId.ts"

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1_000)

/** When the first record expires with its result, in epoch milliseconds. */
const expiryOf = (records: Records): number =>
  Math.min(...records.map(({ ended, updated }) => (ended ?? updated) + keptForMs))

/** The query parameter that selects one of a task's videos. */
const videoParameter = "video"

/** A request about one task. */
interface TaskRequest {
  readonly operation: Operation
  readonly id: string
  readonly request: HttpServerRequest.HttpServerRequest
  readonly record: RequestRecord
}

const make = Effect.gen(function*() {
  const tasks = yield* Tasks
  const { readContent } = yield* TaskStore
  const keys = yield* KeyRing
  const urls = yield* SignedUrl

  const create = Effect.fnUntraced(function*(accepted: AdmittedRequest) {
    const { body, count, headers, model, operation, ownerId, pool, tenant, traceparent } = accepted
    const key = idempotencyKey(headers)
    if (key instanceof InvalidRequest) return yield* key
    const id = key === undefined ? TaskId.random() : TaskId.idempotent(operation.name, ownerId, key)
    const bodyHash = hash("sha256", body, "hex")
    const task = { id, tenant, ownerId, operation: operation.name, model, pool, bodyHash, traceparent, count }
    const records = yield* tasks.create(task, body, key !== undefined).pipe(
      Effect.catchTag("OtherBody", () => Effect.fail(new IngressError.IdempotencyKeyReused()))
    )
    return { id, status: statusOf(records) }
  })

  const serve = (accepted: AdmittedRequest, exchange: Exchange) => {
    const { operation, settle } = accepted
    const creating = Effect.onExit(create(accepted), (exit) =>
      // only the calls that a task makes use tokens
      Effect.sync(() => settle?.(Exit.hasInterrupts(exit) ? undefined : "nothing")))
    exchange.run(creating, ({ id, status }) => {
      const headers = {
        "content-type": "application/json",
        location: `${operation.paths[0]}/${id}`,
        ...(hasEnded(status) ? {} : pollAgain)
      }
      exchange.send({ status: 200, headers }, JSON.stringify({ task_id: id, status }))
    })
  }

  /** `None` is a task that does not exist any more. */
  const orNotFound = <A>(found: Effect.Effect<Option.Option<A>, Unavailable>) =>
    Effect.flatMap(found, (found) => Effect.fromOption(found, () => new IngressError.TaskNotFound()))

  /** One video's record; the first by default. */
  const find = Effect.fnUntraced(function*(operation: Operation, id: string, index = 0) {
    if (!TaskId.pattern.test(id)) return yield* new IngressError.TaskNotFound()
    const task = yield* orNotFound(tasks.find(id, index))
    if (task.operation !== operation.name) return yield* new IngressError.TaskNotFound()
    // each request about a task has its own trace, linked to the task's trace
    if (index === 0) yield* TraceParent.link(task.traceparent)
    return task
  })

  /** One video's record, if it belongs to the owner of the request's key. */
  const findOwn = Effect.fnUntraced(function*({ id, operation, record, request }: TaskRequest, index = 0) {
    const key = yield* authenticate(keys, request, operation.dialect)
    record.setKey(key.id)
    const task = yield* find(operation, id, index)
    const isOwn = task.ownerId === key.owner || task.tenant === key.id
    return isOwn ? task : yield* new IngressError.TaskNotFound()
  })

  const findAllOwn = (asked: TaskRequest) =>
    Effect.flatMap(findOwn(asked), (first) => orNotFound(tasks.withOthers(first)))

  const view = Effect.fnUntraced(function*(operation: Operation, records: Records) {
    const [{ created, id, model }] = records
    const expires = expiryOf(records)
    const now = yield* Clock.currentTimeMillis
    const status = statusOf(records)
    const isRunning = !hasEnded(status)
    const videos = yield* Effect.forEach(records, ({ id: own, index, result }) => {
      const made = Option.getOrUndefined(videoResult(result))
      if (made === undefined) return Effect.succeed([])
      const { format, metadata } = made
      return Effect.map(
        urls.sign(own, expires - now, `${operation.paths[0]}/${id}/content`),
        (url) => [{ index, url: index === 0 ? url : `${url}&${videoParameter}=${index}`, format, metadata }]
      )
    })
    const data = videos.flat().map(({ index: _index, ...video }) => video)
    const [first] = videos[0] ?? []
    const error = records.find((record) => record.error !== null)?.error ?? null
    const body: VideoTaskView = {
      task_id: id,
      status,
      progress: Math.floor(records.reduce((sum, { progress }) => sum + progress, 0) / records.length),
      model,
      created: seconds(created),
      ...(isRunning ? {} : { completed_at: seconds(Math.max(...records.map(({ ended }) => ended ?? 0))) }),
      expires_at: seconds(expires),
      data,
      ...(first === undefined ? {} : { url: first.url, format: first.format }),
      metadata: first?.metadata ?? null,
      error: error === null ? null : ErrorEnvelope.toFields(error)
    }
    return HttpServerResponse.jsonUnsafe(body, isRunning ? { headers: pollAgain } : undefined)
  })

  const show = Effect.fnUntraced(function*(asked: TaskRequest) {
    const records = yield* findAllOwn(asked)
    yield* tasks.resubmit(records)
    return yield* view(asked.operation, records)
  })

  const cancel = Effect.fnUntraced(function*(asked: TaskRequest) {
    return yield* view(asked.operation, yield* orNotFound(tasks.cancel(yield* findAllOwn(asked))))
  })

  /** The record of a signed URL, or of the request's key. */
  const findForContent = Effect.fnUntraced(function*(asked: TaskRequest) {
    const query = new URL(asked.request.url, "http://gateway").searchParams
    const number = query.get(videoParameter) ?? "0"
    if (!/^\d{1,2}$/.test(number)) {
      return yield* InvalidRequest.at(videoParameter, "must be the index of a video, from 0 to n - 1")
    }
    const index = Number(number)
    const signature = query.get("signature")
    if (signature === null) return yield* findOwn(asked, index)
    const verdict = yield* urls.verify(siblingId(asked.id, index), query.get("expires") ?? "", signature)
    if (verdict !== "valid") return yield* new IngressError.LinkRefused({ reason: verdict })
    return yield* find(asked.operation, asked.id, index)
  })

  const content = Effect.fnUntraced(function*(asked: TaskRequest) {
    const { request } = asked
    const { id, result, status } = yield* findForContent(asked)
    const video = Option.getOrUndefined(videoResult(result))
    if (video === undefined) return yield* new IngressError.TaskNotCompleted({ status })
    const { format, size } = video
    return yield* answerRange(request.headers, {
      size,
      // a task's result never changes
      tag: `"${id}"`,
      contentType: videoTypes[format],
      filename: `${id}.${format}`,
      read: (from, until) => readContent(id, from, until)
    })
  })

  const byId = (
    method: "GET" | "DELETE",
    operation: Operation,
    suffix: string,
    name: string,
    answer: (asked: TaskRequest) => Effect.Effect<HttpServerResponse.HttpServerResponse, IngressError.RequestError>
  ) =>
    HttpRouter.route(
      method,
      `${operation.paths[0]}/:id${suffix}`,
      (request) =>
        respond(`${operation.name}.${name}`, operation.dialect, (record) =>
          Effect.flatMap(HttpRouter.params, ({ id = "" }) =>
            answer({ operation, id, request, record })))
    )

  const taskOperations = operations.filter((operation) => operation.kind === "task")
  yield* Operations.serveOperations(taskOperations, serve)
  return HttpRouter.addAll(
    taskOperations.flatMap((operation) => [
      byId("GET", operation, "", "get", show),
      byId("DELETE", operation, "", "cancel", cancel),
      byId("GET", operation, "/content", "content", content)
    ])
  )
})

/** Dependencies of the routes. They are built before the server listens: a server without routes answers nothing. */
export const services = Layer.merge(Tasks.layer("video"), SignedUrl.layer)

export const layer = Layer.unwrap(make).pipe(Layer.provide(DecodeTurns.layer))
