/**
 * The routes of durable tasks: operations of the kind `task` create them; clients get, download and cancel them by id below
 * the operation's path.
 */
import { Clock, Effect, Layer, Option } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { hash } from "node:crypto"
import { TaskQueue } from "../../../shared/bus/tasks/TaskQueue.ts"
import { InvalidRequest, Unavailable } from "../../../shared/contract/JobError.ts"
import type { Operation } from "../../../shared/contract/Operation.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import type { VideoTaskView } from "../../../shared/contract/operations/VideoGenerations.ts"
import { SignedUrl } from "../../../shared/files/SignedUrl.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import * as VideoTask from "../../../shared/tasks/VideoTask.ts"
import { VideoTasks } from "../../../shared/tasks/VideoTasks.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import { authenticate } from "../request/Authentication.ts"
import * as ByteRange from "./ByteRange.ts"
import { DecodeTurns } from "../request/DecodeTurns.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import * as IngressError from "../errors/IngressError.ts"
import * as Operations from "./Operations.ts"
import type { RequestRecord } from "../record/RequestRecord.ts"
import { respond } from "./Respond.ts"
import * as TaskId from "./TaskId.ts"

/** The polling interval for clients, in seconds. */
const pollAgain = { "retry-after": "2" }

/**
 * A task that is queued at this age, in milliseconds, is submitted again: its ingress may have died before it submitted the
 * task. The queue drops duplicates up to the upper bound.
 */
const resubmitMs = { from: 10_000, until: 100_000 }

const unavailable = new Unavailable({ retryAfterMs: 1_000 })

const keyPattern = /^[\x20-\x7e]{1,255}$/

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1_000)

const isRunning = ({ status }: VideoTask.VideoTask): boolean => !VideoTask.hasEnded(status)

/** When the task and its result expire, in epoch milliseconds. */
const expiryOf = (task: VideoTask.VideoTask): number => (task.ended ?? task.updated) + VideoTask.keptForMs

/** A request about one task. */
interface TaskRequest {
  readonly operation: Operation
  readonly id: string
  readonly request: HttpServerRequest.HttpServerRequest
  readonly record: RequestRecord
}

const make = Effect.gen(function*() {
  const tasks = yield* VideoTasks
  const queue = yield* TaskQueue
  const keys = yield* KeyRing
  const urls = yield* SignedUrl

  const submit = ({ id, model, operation, pool, tenant, traceparent }: VideoTask.VideoTask) =>
    queue.submit({ workload: "video", id, model, operation, pool, tenant, traceparent })

  const idFor = Effect.fnUntraced(function*(operation: Operation, tenant: string, key: string | undefined) {
    if (key === undefined) return TaskId.random()
    if (keyPattern.test(key)) return TaskId.idempotent(operation.name, tenant, key)
    const problem = "must be 1 to 255 visible ASCII characters"
    return yield* InvalidRequest.at("idempotency-key", problem, "invalid_idempotency_key")
  })

  /** If several requests use one idempotency key, the task's record decides: one request creates it, the others find it. */
  const create = Effect.fnUntraced(function*(accepted: Operations.AdmittedRequest) {
    const { body, headers, model, operation, pool, tenant, traceparent } = accepted
    const id = yield* idFor(operation, tenant, headers["idempotency-key"])
    const bodyHash = hash("sha256", body, "hex")
    const now = yield* Clock.currentTimeMillis
    const fresh = VideoTask.make({ id, tenant, operation: operation.name, model, pool, bodyHash, traceparent }, now)
    const task = yield* tasks.create(fresh, body).pipe(Effect.mapError(() => unavailable))
    if (task.bodyHash !== bodyHash) return yield* new IngressError.IdempotencyKeyReused()
    if (task.status === "queued") yield* submit(task)
    return HttpServerResponse.jsonUnsafe({ task_id: task.id, status: task.status }, {
      headers: { location: `${operation.paths[0]}/${task.id}`, ...(isRunning(task) ? pollAgain : {}) }
    })
  })

  const find = Effect.fnUntraced(function*(operation: Operation, id: string) {
    if (!TaskId.pattern.test(id)) return yield* new IngressError.TaskNotFound()
    const found = yield* tasks.find(id).pipe(Effect.mapError(() => unavailable))
    if (Option.isNone(found) || found.value.operation !== operation.name) return yield* new IngressError.TaskNotFound()
    // each request about a task has its own trace, linked to the task's trace
    yield* TraceParent.link(found.value.traceparent)
    return found.value
  })

  /** The task, if it belongs to the request's key. */
  const findOwn = Effect.fnUntraced(function*({ id, operation, record, request }: TaskRequest) {
    const key = yield* authenticate(keys, request.headers, operation.dialect)
    record.setKey(key.id)
    const task = yield* find(operation, id)
    return task.tenant === key.id ? task : yield* new IngressError.TaskNotFound()
  })

  const view = Effect.fnUntraced(function*(operation: Operation, task: VideoTask.VideoTask) {
    const expires = expiryOf(task)
    const now = yield* Clock.currentTimeMillis
    const body: VideoTaskView = {
      task_id: task.id,
      status: task.status,
      progress: task.progress,
      model: task.model,
      created: seconds(task.created),
      ...(task.ended === null ? {} : { completed_at: seconds(task.ended) }),
      expires_at: seconds(expires),
      ...(task.result === null ? {} : {
        url: yield* urls.sign(task.id, expires - now, `${operation.paths[0]}/${task.id}/content`),
        format: task.result.format
      }),
      metadata: task.result?.metadata ?? null,
      error: task.error === null ? null : ErrorEnvelope.toFields(task.error)
    }
    return HttpServerResponse.jsonUnsafe(body, isRunning(task) ? { headers: pollAgain } : undefined)
  })

  const show = Effect.fnUntraced(function*(asked: TaskRequest) {
    const task = yield* findOwn(asked)
    const waitedMs = (yield* Clock.currentTimeMillis) - task.created
    if (task.status === "queued" && waitedMs > resubmitMs.from && waitedMs < resubmitMs.until) {
      yield* submit(task).pipe(Effect.ignore, Effect.forkDetach)
    }
    return yield* view(asked.operation, task)
  })

  const cancel = Effect.fnUntraced(function*(asked: TaskRequest) {
    yield* findOwn(asked)
    const task = yield* tasks.cancel(asked.id).pipe(
      Effect.mapError((error) => error._tag === "TaskRefused" ? new IngressError.TaskNotFound() : unavailable)
    )
    return yield* view(asked.operation, task)
  })

  /** The task of a signed URL, or of the request's key. */
  const findForContent = Effect.fnUntraced(function*(asked: TaskRequest) {
    const query = new URL(asked.request.url, "http://gateway").searchParams
    const signature = query.get("signature")
    if (signature === null) return yield* findOwn(asked)
    const verdict = yield* urls.verify(asked.id, query.get("expires") ?? "", signature)
    if (verdict !== "valid") return yield* new IngressError.LinkRefused({ reason: verdict })
    return yield* find(asked.operation, asked.id)
  })

  const content = Effect.fnUntraced(function*(asked: TaskRequest) {
    const { id, request } = asked
    const { result, status } = yield* findForContent(asked)
    if (result === null) return yield* new IngressError.TaskNotCompleted({ status })
    const { size } = result
    // a task's result never changes
    const tag = `"${id}"`
    const condition = request.headers["if-range"]
    const range = ByteRange.parse(
      condition === undefined || condition === tag ? request.headers["range"] : undefined,
      size
    )
    if (range === "unsatisfiable") return yield* new IngressError.RangeNotSatisfiable({ size })
    const { from, until } = range === "whole" ? { from: 0, until: size } : range
    return HttpServerResponse.stream(tasks.readContent(id, from, until), {
      status: range === "whole" ? 200 : 206,
      contentType: "video/mp4",
      contentLength: until - from,
      headers: {
        "accept-ranges": "bytes",
        "etag": tag,
        "cache-control": "private, max-age=3600, immutable",
        "content-disposition": `inline; filename="${id}.mp4"`,
        "x-content-type-options": "nosniff",
        ...(range === "whole" ? {} : { "content-range": `bytes ${from}-${until - 1}/${size}` })
      }
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
  return HttpRouter.addAll([
    ...yield* Operations.routesOf(taskOperations, create),
    ...taskOperations.flatMap((operation) => [
      byId("GET", operation, "", "get", show),
      byId("DELETE", operation, "", "cancel", cancel),
      byId("GET", operation, "/content", "content", content)
    ])
  ])
})

/** How long to wait for the store before a client gets 503, in milliseconds. */
const patienceMs = 5_000

/** Dependencies of the routes. They are built before the server listens: a server without routes answers nothing. */
export const services = Layer.mergeAll(VideoTasks.layer({ patienceMs }), TaskQueue.layer, SignedUrl.layer)

export const layer = Layer.unwrap(make).pipe(Layer.provide(DecodeTurns.layer))
