/**
 * Answers clients from the log of a task: with its events while they are made, or again from any event on. If the task fails, the
 * last event is the error.
 */
import { Clock, Effect, Option, Result, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import type { Writable } from "node:stream"
import { InvalidRequest, type Unavailable } from "../../../shared/contract/JobError.ts"
import type { Owner } from "../../../shared/contract/Owner.ts"
import { operationNamed } from "../../../shared/contract/operations/operations.ts"
import type { AnswerTasks } from "../../../shared/tasks/answers/AnswerTasks.ts"
import type { AnswerHead } from "../../../shared/tasks/answers/Page.ts"
import { NumberedEvents } from "../../../shared/tasks/answers/NumberedEvents.ts"
import type { TaskRecord } from "../../../shared/tasks/TaskRecord.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import { type RequestError, TaskNotCompleted, TaskNotFound } from "../errors/IngressError.ts"
import type { Exchange } from "../exchange/Exchange.ts"
import type { Asked } from "./OwnedRoutes.ts"

type Tasks = AnswerTasks["Service"]

/** How long after the end of a task its events can be read, in milliseconds. */
const readableForMs = 60 * 60_000

/** How long a client may wait for the first event before the response starts, in milliseconds: load balancers cut silent connections. */
const earlyAfterMs = 15_000
const keepAlive = Buffer.from(": keep-alive\n\n")

const eventStream = "text/event-stream"
const unbuffered = { "cache-control": "no-cache", "x-accel-buffering": "no" }

/** Why a task that has ended has no answer; `undefined` if it has one. */
export const errorOf = ({ error, status }: TaskRecord): RequestError | undefined =>
  error ?? (status === "completed" ? undefined : new TaskNotCompleted({ status }))

/** The whole answer, while it is made or afterwards. */
export const bytes = (tasks: Tasks, owner: Owner, { id }: TaskRecord): Stream.Stream<Uint8Array, Unavailable> =>
  Stream.map(tasks.pages(owner, id), (page) => page === "silence" ? new Uint8Array(0) : page.bytes)

interface Reading {
  /** The number of the last event that the client has. */
  readonly after?: number
  /** Whether each event has its number as its id. */
  readonly hasIds?: boolean
  readonly requestId: string
}

/** The events of an answer up to the end of its task, with comments during silence. */
export const events = (
  tasks: Tasks,
  owner: Owner,
  { id, model, operation }: TaskRecord,
  { after = -1, hasIds = false, requestId }: Reading
): Stream.Stream<Uint8Array, Unavailable> =>
  Stream.suspend(() => {
    let numbered: NumberedEvents | undefined
    const idLine = (number: number): string => hasIds ? `id: ${number}\n` : ""
    const pages = Stream.map(tasks.pages(owner, id, after + 1), (page) => {
      if (page === "silence") return keepAlive
      numbered ??= new NumberedEvents(page.event)
      const pieces = numbered.push(page.bytes).flatMap(({ bytes, number }) => {
        if (number === undefined) return [bytes]
        return number <= after ? [] : [Buffer.from(idLine(number)), bytes]
      })
      return Buffer.concat(pieces)
    })
    const end = Effect.map(tasks.find(owner, id), (task) => {
      const { next = 0, rest = "" } = numbered ?? {}
      const error = Option.isNone(task) ? new TaskNotFound() : errorOf(task.value)
      if (error === undefined) return Buffer.from(rest)
      if (next <= after) return Buffer.alloc(0)
      const dialect = operationNamed(operation)?.dialect ?? "openai"
      const frame = ErrorEnvelope.toFrame(dialect, error, { requestId, model, id, sequenceNumber: next })
      return Buffer.from(idLine(next) + frame)
    })
    return Stream.concat(pages, Stream.fromEffect(end))
  }).pipe(Stream.filter(({ length }) => length > 0))

const naturalIn = (text: string | null | undefined): number | undefined => {
  if (text === null || text === undefined) return undefined
  return /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN
}

/** Answers a request for the events after the one that a query parameter or a header names. */
export const answer = Effect.fnUntraced(function*(
  tasks: Tasks,
  { headers, owner, query, requestId }: Omit<Asked, "key" | "request">,
  task: TaskRecord,
  position: "starting_after" | "last-event-id"
): Effect.fn.Return<HttpServerResponse.HttpServerResponse, InvalidRequest> {
  const isQuery = position === "starting_after"
  const after = naturalIn(isQuery ? query.get(position) : headers[position])
  if (Number.isNaN(after)) return yield* InvalidRequest.at(position, "must be the number of an event")
  const now = yield* Clock.currentTimeMillis
  const refuse = (why: string) => InvalidRequest.at("stream", why, "not_supported")
  if (task.request?.streams !== true) {
    return yield* refuse("is not available: the response was not created with `stream: true`")
  }
  if (task.ended !== null && now - task.ended > readableForMs) {
    return yield* refuse("is not available later than an hour after the end: get the answer as a whole")
  }
  const reading = { requestId, hasIds: !isQuery, ...(after === undefined ? {} : { after }) }
  return HttpServerResponse.stream(events(tasks, owner, task, reading), {
    contentType: eventStream,
    headers: unbuffered
  })
})

const write = (out: Writable, bytes: Uint8Array): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (out.write(bytes)) resume(Effect.void)
    else out.once("drain", () => resume(Effect.void))
  })

interface Relayed {
  readonly owner: Owner
  readonly task: TaskRecord
  /** Whether the client asks for a stream. */
  readonly streams: boolean
}

/** Waits until the answer begins. Fails if the task ends without one. */
const begun = Effect.fnUntraced(
  function*(tasks: Tasks, owner: Owner, id: string): Effect.fn.Return<AnswerHead, RequestError> {
    const head = yield* tasks.head(owner, id)
    if (Option.isSome(head)) return head.value
    const error = Option.map(yield* tasks.find(owner, id), errorOf)
    return yield* Option.getOrUndefined(error) ?? new TaskNotFound()
  }
)

/** Waits until the answer is complete, so that an error can still set the status. */
const completed = Effect.fnUntraced(
  function*(tasks: Tasks, owner: Owner, id: string): Effect.fn.Return<AnswerHead, RequestError> {
    const error = Option.flatMapNullishOr(yield* tasks.ended(owner, id), errorOf)
    if (Option.isSome(error)) return yield* error.value
    return yield* begun(tasks, owner, id)
  }
)

/** Relays the answer of a request's task. The task continues if the client disconnects. */
export const relay = (tasks: Tasks, { owner, streams, task }: Relayed, exchange: Exchange): void => {
  const { id } = task
  const head = streams
    ? Effect.timeoutOption(begun(tasks, owner, id), earlyAfterMs)
    : Effect.asSome(completed(tasks, owner, id))
  exchange.run(head, (head) => {
    const { contentType = eventStream, headers = {}, status = 200 } = Option.getOrUndefined(head) ?? {}
    const isStream = contentType.startsWith(eventStream)
    exchange.record.markAnswering()
    const out = exchange.open({
      status,
      headers: { ...headers, ...(isStream ? unbuffered : {}), "content-type": contentType }
    })
    const pieces = isStream ? events(tasks, owner, task, { requestId: exchange.record.id }) : bytes(tasks, owner, task)
    const relayed = Effect.result(Stream.runForEach(pieces, (bytes) => write(out, bytes)))
    exchange.run(relayed, (result) => Result.isSuccess(result) ? out.end() : exchange.break())
  })
}
