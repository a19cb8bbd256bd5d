/**
 * The routes of durable tasks: operations of the kind `task` create them; clients get, download and cancel them by id below
 * the operation's path.
 */
import { Clock, Effect, Exit, Layer, Option } from "effect"
import { HttpRouter, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { hash } from "node:crypto"
import { TaskQueue } from "../../../shared/bus/tasks/TaskQueue.ts"
import { InvalidRequest, Unavailable } from "../../../shared/contract/JobError.ts"
import type { Operation } from "../../../shared/contract/Operation.ts"
import { operations } from "../../../shared/contract/operations/operations.ts"
import { type VideoTaskView, videoTypes } from "../../../shared/contract/operations/VideoGenerations.ts"
import { SignedUrl } from "../../../shared/files/SignedUrl.ts"
import { KeyRing } from "../../../shared/keys/KeyRing.ts"
import * as VideoTask from "../../../shared/tasks/VideoTask.ts"
import { VideoTasks } from "../../../shared/tasks/VideoTasks.ts"
import * as TraceParent from "../../../shared/telemetry/TraceParent.ts"
import { authenticate } from "../request/Authentication.ts"
import * as ByteRange from "./ByteRange.ts"
import { DecodeTurns } from "../request/DecodeTurns.ts"
import type { Exchange } from "../exchange/Exchange.ts"
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

/** The records of one request, first to last. Clients see them as one task. */
type Records = readonly [VideoTask.VideoTask, ...Array<VideoTask.VideoTask>]

/** When the first of them expires with its result, in epoch milliseconds. */
const expiryOf = (records: Records): number =>
  Math.min(...records.map(({ ended, updated }) => (ended ?? updated) + VideoTask.keptForMs))

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
    const { body, count, headers, model, operation, pool, tenant, traceparent } = accepted
    const id = yield* idFor(operation, tenant, headers["idempotency-key"])
    const bodyHash = hash("sha256", body, "hex")
    const now = yield* Clock.currentTimeMillis
    const fresh = VideoTask.make(
      { id, tenant, operation: operation.name, model, pool, bodyHash, traceparent, count },
      now
    )
    const store = (task: VideoTask.VideoTask) => Effect.mapError(tasks.create(task, body), () => unavailable)
    const first = yield* store(fresh)
    if (first.bodyHash !== bodyHash) return yield* new IngressError.IdempotencyKeyReused()
    // a missing record of an old task has expired: its video would be made and paid for again
    const siblings = now - first.created < VideoTask.keptForMs / 2 ? VideoTask.siblingsOf(first, now) : []
    const records: Records = [first, ...yield* Effect.forEach(siblings, store, { concurrency: "unbounded" })]
    yield* Effect.forEach(records.filter(({ status }) => status === "queued"), submit, { discard: true }).pipe(
      // a client that cannot repeat the request would pay for videos whose task it does not know
      Effect.tapError(() =>
        headers["idempotency-key"] === undefined ? Effect.forkDetach(Effect.ignore(cancelAll(records))) : Effect.void
      )
    )
    const status = VideoTask.statusOf(records)
    return { id, status }
  })

  const serve = (accepted: Operations.AdmittedRequest, exchange: Exchange) => {
    const { operation, settle } = accepted
    const creating = Effect.onExit(create(accepted), (exit) =>
      // only the calls that a task makes use tokens
      Effect.sync(() => settle?.(Exit.hasInterrupts(exit) ? undefined : "nothing")))
    exchange.run(creating, ({ id, status }) => {
      const headers = {
        "content-type": "application/json",
        location: `${operation.paths[0]}/${id}`,
        ...(VideoTask.hasEnded(status) ? {} : pollAgain)
      }
      exchange.send({ status: 200, headers }, JSON.stringify({ task_id: id, status }))
    })
  }

  const cancelAll = (records: Records) =>
    Effect.forEach(records, ({ id }) => tasks.cancel(id), { concurrency: "unbounded" }).pipe(
      Effect.mapError((error) => error._tag === "TaskRefused" ? new IngressError.TaskNotFound() : unavailable),
      Effect.map(([first, ...others]): Records => [first!, ...others])
    )

  /** One video's record; the first by default. */
  const find = Effect.fnUntraced(function*(operation: Operation, id: string, index = 0) {
    if (!TaskId.pattern.test(id)) return yield* new IngressError.TaskNotFound()
    const found = yield* tasks.find(VideoTask.siblingId(id, index)).pipe(Effect.mapError(() => unavailable))
    if (Option.isNone(found) || found.value.operation !== operation.name) return yield* new IngressError.TaskNotFound()
    // each request about a task has its own trace, linked to the task's trace
    if (index === 0) yield* TraceParent.link(found.value.traceparent)
    return found.value
  })

  /** One video's record, if it belongs to the request's key. */
  const findOwn = Effect.fnUntraced(function*({ id, operation, record, request }: TaskRequest, index = 0) {
    const key = yield* authenticate(keys, request.headers, operation.dialect)
    record.setKey(key.id)
    const task = yield* find(operation, id, index)
    return task.tenant === key.id ? task : yield* new IngressError.TaskNotFound()
  })

  const findAllOwn = Effect.fnUntraced(function*(asked: TaskRequest) {
    const first = yield* findOwn(asked)
    const indexes = Array.from({ length: first.count - 1 }, (_, before) => before + 1)
    const others = yield* Effect.forEach(indexes, (index) => find(asked.operation, asked.id, index), {
      concurrency: "unbounded"
    })
    const records: Records = [first, ...others]
    return records
  })

  const view = Effect.fnUntraced(function*(operation: Operation, records: Records) {
    const [{ created, id, model }] = records
    const expires = expiryOf(records)
    const now = yield* Clock.currentTimeMillis
    const status = VideoTask.statusOf(records)
    const isRunning = !VideoTask.hasEnded(status)
    const videos = yield* Effect.forEach(records, ({ id: own, index, result }) => {
      if (result === null) return Effect.succeed([])
      const { format, metadata } = result
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
    const waitedMs = (yield* Clock.currentTimeMillis) - records[0].created
    if (waitedMs > resubmitMs.from && waitedMs < resubmitMs.until) {
      yield* Effect.forEach(
        records.filter(({ status }) => status === "queued"),
        (task) => submit(task).pipe(Effect.ignore, Effect.forkDetach),
        { discard: true }
      )
    }
    return yield* view(asked.operation, records)
  })

  const cancel = Effect.fnUntraced(function*(asked: TaskRequest) {
    return yield* view(asked.operation, yield* cancelAll(yield* findAllOwn(asked)))
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
    const verdict = yield* urls.verify(VideoTask.siblingId(asked.id, index), query.get("expires") ?? "", signature)
    if (verdict !== "valid") return yield* new IngressError.LinkRefused({ reason: verdict })
    return yield* find(asked.operation, asked.id, index)
  })

  const content = Effect.fnUntraced(function*(asked: TaskRequest) {
    const { request } = asked
    const { id, result, status } = yield* findForContent(asked)
    if (result === null) return yield* new IngressError.TaskNotCompleted({ status })
    const { format, size } = result
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
      contentType: videoTypes[format],
      contentLength: until - from,
      headers: {
        "accept-ranges": "bytes",
        "etag": tag,
        "cache-control": "private, max-age=3600, immutable",
        "content-disposition": `inline; filename="${id}.${format}"`,
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
  yield* Operations.serveOperations(taskOperations, serve)
  return HttpRouter.addAll(
    taskOperations.flatMap((operation) => [
      byId("GET", operation, "", "get", show),
      byId("DELETE", operation, "", "cancel", cancel),
      byId("GET", operation, "/content", "content", content)
    ])
  )
})

/** How long to wait for the store before a client gets 503, in milliseconds. */
const patienceMs = 5_000

/** Dependencies of the routes. They are built before the server listens: a server without routes answers nothing. */
export const services = Layer.mergeAll(VideoTasks.layer({ patienceMs }), TaskQueue.layer, SignedUrl.layer)

export const layer = Layer.unwrap(make).pipe(Layer.provide(DecodeTurns.layer))
