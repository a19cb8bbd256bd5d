/**
 * Durable tasks as their clients see them: made by an operation of the kind `task`, asked for, fetched and cancelled by
 * id below the operation's path.
 */
import { Clock, Effect, Layer, Option } from "effect"
import { type Headers, HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
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
import {
  IdempotencyKeyReused,
  LinkRefused,
  RangeNotSatisfiable,
  type RequestError,
  TaskNotCompleted,
  TaskNotFound
} from "../errors/IngressError.ts"
import * as Operations from "./Operations.ts"
import type { RequestRecord } from "../record/RequestRecord.ts"
import * as TaskId from "./TaskId.ts"

/** When a client should ask again, in seconds. */
const askAgain = { "retry-after": "2" }

/**
 * A task that has waited for this long, in milliseconds, may never have reached its queue, because the ingress that made
 * it was lost. Until the second its queue recognises it if it did.
 */
const submitAgainMs = { from: 10_000, until: 100_000 }

const unavailable = new Unavailable({ retryAfterMs: 1_000 })

/** Visible ASCII, as in any header, and not without bound. */
const keyPattern = /^[\x20-\x7e]{1,255}$/

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1_000)

const isRunning = ({ status }: VideoTask.VideoTask): boolean => !VideoTask.hasEnded(status)

const contentPath = (operation: Operation, id: string): string => `${operation.paths[0]}/${id}/content`

/** When a task and what belongs to it is forgotten, in epoch milliseconds. */
const expiryOf = (task: VideoTask.VideoTask): number => (task.ended ?? task.updated) + VideoTask.keptForMs

const make = Effect.gen(function*() {
  const tasks = yield* VideoTasks
  const queue = yield* TaskQueue
  const keys = yield* KeyRing
  const urls = yield* SignedUrl

  const submit = (task: VideoTask.VideoTask) =>
    queue.submit({
      workload: "video",
      pool: task.pool,
      id: task.id,
      operation: task.operation,
      model: task.model,
      tenant: task.tenant,
      traceparent: task.traceparent
    })

  const idFor = (
    operation: Operation,
    tenant: string,
    headers: Headers.Headers
  ): Effect.Effect<string, InvalidRequest> => {
    const key = headers["idempotency-key"]
    if (key === undefined) return Effect.sync(TaskId.random)
    return keyPattern.test(key) ? Effect.succeed(TaskId.idempotent(operation.name, tenant, key)) : Effect.fail(
      InvalidRequest.at("idempotency-key", "must be 1 to 255 visible ASCII characters", "invalid_idempotency_key")
    )
  }

  /** The record is the arbiter: of several requests under one key, one makes the task and the others find it. */
  const create = Effect.fnUntraced(function*(accepted: Operations.Accepted) {
    const { body, headers, model, operation, pool, tenant, traceparent } = accepted
    const id = yield* idFor(operation, tenant, headers)
    const bodyHash = hash("sha256", body, "hex")
    const now = yield* Clock.currentTimeMillis
    const fresh = VideoTask.make({ id, tenant, operation: operation.name, model, pool, bodyHash, traceparent }, now)
    const task = yield* tasks.create(fresh, body).pipe(Effect.mapError(() => unavailable))
    if (task.bodyHash !== bodyHash) return yield* new IdempotencyKeyReused()
    if (task.status === "queued") yield* submit(task)
    return HttpServerResponse.jsonUnsafe({ task_id: task.id, status: task.status }, {
      headers: { location: `${operation.paths[0]}/${task.id}`, ...(isRunning(task) ? askAgain : {}) }
    })
  })

  const find = Effect.fnUntraced(function*(operation: Operation, id: string) {
    if (!TaskId.pattern.test(id)) return yield* new TaskNotFound()
    const found = yield* tasks.find(id).pipe(Effect.mapError(() => unavailable))
    if (Option.isNone(found) || found.value.operation !== operation.name) return yield* new TaskNotFound()
    // every look at a task has a trace of its own, which leads to that of the task
    yield* TraceParent.link(found.value.traceparent)
    return found.value
  })

  /** The task, if it belongs to whoever asks. */
  const findOwn = Effect.fnUntraced(function*(
    operation: Operation,
    id: string,
    headers: Headers.Headers,
    record: RequestRecord
  ) {
    const key = yield* authenticate(keys, headers, operation.dialect)
    record.authenticated(key.id)
    const task = yield* find(operation, id)
    return task.tenant === key.id ? task : yield* new TaskNotFound()
  })

  const view = Effect.fnUntraced(function*(operation: Operation, task: VideoTask.VideoTask) {
    const expires = expiryOf(task)
    const now = yield* Clock.currentTimeMillis
    const seen: VideoTaskView = {
      task_id: task.id,
      status: task.status,
      progress: task.progress,
      model: task.model,
      created: seconds(task.created),
      ...(task.ended === null ? {} : { completed_at: seconds(task.ended) }),
      expires_at: seconds(expires),
      ...(task.result === null ? {} : {
        url: yield* urls.sign(task.id, expires - now, contentPath(operation, task.id)),
        format: task.result.format
      }),
      metadata: task.result?.metadata ?? null,
      error: task.error === null ? null : ErrorEnvelope.toFields(task.error)
    }
    return HttpServerResponse.jsonUnsafe(seen, isRunning(task) ? { headers: askAgain } : undefined)
  })

  const show = Effect.fnUntraced(function*(
    operation: Operation,
    id: string,
    headers: Headers.Headers,
    record: RequestRecord
  ) {
    const task = yield* findOwn(operation, id, headers, record)
    const waited = (yield* Clock.currentTimeMillis) - task.created
    if (task.status === "queued" && waited > submitAgainMs.from && waited < submitAgainMs.until) {
      yield* submit(task).pipe(Effect.ignore, Effect.forkDetach)
    }
    return yield* view(operation, task)
  })

  const cancel = Effect.fnUntraced(function*(
    operation: Operation,
    id: string,
    headers: Headers.Headers,
    record: RequestRecord
  ) {
    yield* findOwn(operation, id, headers, record)
    const task = yield* tasks.cancel(id).pipe(
      Effect.mapError((error) => error._tag === "TaskRefused" ? new TaskNotFound() : unavailable)
    )
    return yield* view(operation, task)
  })

  /** Whoever holds the signed address may fetch the video, and whoever holds the key of its tenant. */
  const findContent = Effect.fnUntraced(function*(
    operation: Operation,
    id: string,
    { headers, url }: HttpServerRequest.HttpServerRequest,
    record: RequestRecord
  ) {
    const query = new URL(url, "http://gateway").searchParams
    const signature = query.get("signature")
    if (signature === null) return yield* findOwn(operation, id, headers, record)
    const verdict = yield* urls.verify(id, query.get("expires") ?? "", signature)
    return verdict === "valid" ? yield* find(operation, id) : yield* new LinkRefused({ reason: verdict })
  })

  const content = Effect.fnUntraced(function*(
    operation: Operation,
    id: string,
    request: HttpServerRequest.HttpServerRequest,
    record: RequestRecord
  ) {
    const { result, status } = yield* findContent(operation, id, request, record)
    if (result === null) return yield* new TaskNotCompleted({ status })
    const { size } = result
    // a task's video never changes
    const tag = `"${id}"`
    const condition = request.headers["if-range"]
    const range = ByteRange.parse(
      condition === undefined || condition === tag ? request.headers["range"] : undefined,
      size
    )
    if (range === "unsatisfiable") return yield* new RangeNotSatisfiable({ size })
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
    answer: (
      id: string,
      request: HttpServerRequest.HttpServerRequest,
      record: RequestRecord
    ) => Effect.Effect<HttpServerResponse.HttpServerResponse, RequestError>
  ) =>
    HttpRouter.route(
      method,
      `${operation.paths[0]}/:id${suffix}`,
      (request) =>
        Operations.respond(`${operation.name}.${name}`, operation.dialect, (record) =>
          Effect.flatMap(HttpRouter.params, ({ id = "" }) =>
            answer(id, request, record)))
    )

  const kind = operations.filter((operation) => operation.kind === "task")
  return HttpRouter.addAll([
    ...yield* Operations.serveAll(kind, create),
    ...kind.flatMap((operation) => [
      byId("GET", operation, "", "get", (id, { headers }, record) => show(operation, id, headers, record)),
      byId("DELETE", operation, "", "cancel", (id, { headers }, record) => cancel(operation, id, headers, record)),
      byId("GET", operation, "/content", "content", (id, request, record) => content(operation, id, request, record))
    ])
  ])
})

/** How long the store is waited for before a client is told to come again, in milliseconds. */
const patienceMs = 5_000

/** What the routes stand on. Built before the server listens: until it has routes a server never answers. */
export const services = Layer.mergeAll(VideoTasks.layer({ patienceMs }), TaskQueue.layer, SignedUrl.layer)

export const layer = Layer.unwrap(make).pipe(Layer.provide(DecodeTurns.layer))
