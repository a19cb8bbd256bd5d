/**
 * Creates, lists, reads, cancels and deletes tasks whose results are answers to requests, for ingress. Each task is accessible only
 * to its owner.
 */
import { Clock, Context, Effect, Layer, Option, Schedule, Stream } from "effect"
import { hash } from "node:crypto"
import { taskQueueOf } from "../../bus/protocol/Subjects.ts"
import { orUnavailable, type QueueFull, Unavailable } from "../../contract/JobError.ts"
import type { Owner } from "../../contract/Owner.ts"
import { asUnavailable, backOff, whileJetStreamFails } from "../../nats/JetStream.ts"
import { openBucket } from "../../nats/KeyValue.ts"
import { Nats } from "../../nats/Nats.ts"
import { buckets } from "../../nats/Storage.ts"
import { bindingOf, type KeyedRequest, type OtherBody } from "../../records/KeyBindings.ts"
import { ownerToken } from "../../records/OwnerToken.ts"
import * as Seal from "../../records/Seal.ts"
import * as RecordStore from "../RecordStore.ts"
import * as Submission from "../Submission.ts"
import { isAnswerTaskId } from "./AnswerTaskId.ts"
import type * as Page from "./Page.ts"
import * as TaskBytes from "../TaskBytes.ts"
import * as TaskHints from "./TaskHints.ts"
import { answerResult } from "./AnswerResult.ts"
import * as StoredTasks from "./StoredTasks.ts"
import * as TaskKeys from "./TaskKeys.ts"
import * as TaskPages from "./TaskPages.ts"
import { TaskQueue } from "../TaskQueue.ts"
import * as TaskRecord from "../TaskRecord.ts"
import { hasEnded } from "../TaskState.ts"

export interface NewAnswerTask
  extends Omit<TaskRecord.NewTask, "binding" | "bodyHash" | "count" | "index" | "request">
{
  readonly owner: Owner
  readonly request: Omit<TaskRecord.AnswerRequest, "bytes" | "pages">
  readonly body: Uint8Array
}

/** What a reader of an answer gets: the next page, or `silence` if none has come for `silenceMs`. */
export type NextPage = Page.Page | "silence"

/** How long to wait for the store before a client gets 503, in milliseconds. */
const patienceMs = 5_000

/** How long a reader waits for a hint before it looks for the next page of an answer, in milliseconds. */
const lookEveryMs = 2_000

/** After how long without a page a reader gets `silence`, in milliseconds, to write something: load balancers cut silent connections. */
const silenceMs = 15_000

/** How long a task is kept after its end, in milliseconds. */
export const keptForMs = 24 * 60 * 60_000

export class AnswerTasks extends Context.Service<AnswerTasks, {
  /**
   * Stores and submits a task, or returns the existing task of the request's idempotency key. Fails with `QueueFull` if too many
   * tasks of the owner wait, and with `TaskStorageFull` if they store too much.
   */
  readonly create: (
    task: NewAnswerTask,
    keyed?: KeyedRequest
  ) => Effect.Effect<TaskRecord.TaskRecord, OtherBody | QueueFull | TaskBytes.TaskStorageFull | Unavailable>
  /** The existing task of an idempotency key. Submits it again if its submission may have been lost. */
  readonly join: (
    owner: Owner,
    keyed: KeyedRequest
  ) => Effect.Effect<Option.Option<TaskRecord.TaskRecord>, OtherBody | Unavailable>
  /** `None` if the task is unknown, expired or another owner's. */
  readonly find: (owner: Owner, id: string) => Effect.Effect<Option.Option<TaskRecord.TaskRecord>, Unavailable>
  /** At most `limit` tasks, the latest first, that are older than the one with the id `after`. */
  readonly list: (
    owner: Owner,
    limit: number,
    after: string | undefined
  ) => Effect.Effect<StoredTasks.TaskPage, Unavailable>
  /** Cancels a task unless it has ended, and returns it. `None` if there is none. */
  readonly cancel: (owner: Owner, id: string) => Effect.Effect<Option.Option<TaskRecord.TaskRecord>, Unavailable>
  /** Stops a task, and deletes it with its request and answer. `false` if there is none. */
  readonly delete: (owner: Owner, id: string) => Effect.Effect<boolean, Unavailable>
  /** The body of the request. `None` if it is missing. */
  readonly readRequest: (
    owner: Owner,
    task: TaskRecord.TaskRecord
  ) => Effect.Effect<Option.Option<Uint8Array>, Unavailable>
  /** Waits until the task has ended. `None` if it is unknown, or has been deleted. */
  readonly ended: (owner: Owner, id: string) => Effect.Effect<Option.Option<TaskRecord.TaskRecord>, Unavailable>
  /** Waits until the answer begins. `None` if the task has ended without one. */
  readonly head: (owner: Owner, id: string) => Effect.Effect<Option.Option<Page.AnswerHead>, Unavailable>
  /**
   * The pages of an answer up to the task's end, also while the answer is being made: all of them, or those from an event on. In that
   * case the first page may begin with earlier events.
   */
  readonly pages: (owner: Owner, id: string, event?: number) => Stream.Stream<NextPage, Unavailable>
}>()("shared/tasks/answers/AnswerTasks") {
  /** Reads `GATEWAY_SECRET` and `GATEWAY_TASKS_MIB`. */
  static readonly layer = Layer.effect(
    AnswerTasks,
    Effect.gen(function*() {
      const bucket = yield* openBucket(buckets.tasks).pipe(Effect.retry(whileJetStreamFails))
      const seal = yield* Seal.fromSecret
      const queue = yield* TaskQueue
      const patience = backOff.pipe(Schedule.upTo({ duration: patienceMs }))
      const hints = TaskHints.make(yield* Nats)
      const records = RecordStore.make(bucket, patience, hints.give)
      const quota = yield* TaskBytes.quotaMiB
      const counted = yield* TaskBytes.make(bucket, patience)
      const pages = TaskPages.make(bucket, seal, hints, patience)
      const keys = TaskKeys.make(bucket, records, patience)
      const stored = StoredTasks.make(
        {
          keys: bucket.keys,
          find: records.find,
          cancel: records.cancel,
          free: keys.free,
          remove: StoredTasks.removeFrom(bucket, patience)
        },
        patience
      )
      const { recordKey } = TaskPages

      const find = (owner: Owner, id: string) =>
        isAnswerTaskId(id) ? orUnavailable(records.find(recordKey(owner, id))) : Effect.succeedNone

      const cancel = (owner: Owner, id: string) =>
        isAnswerTaskId(id) ? orUnavailable(stored.cancel(recordKey(owner, id))) : Effect.succeedNone

      const read = (owner: Owner, id: string, page: number) => orUnavailable(pages.read(owner, id, page))

      const submitFor = (owner: Owner): Submission.Submit => (task) => {
        const { id, model, operation, pool, request, tenant, traceparent } = task
        return request === undefined ? Effect.void : queue.submit({
          queue: taskQueueOf(request.workload),
          ...{ id, model, operation, owner, pool, tenant, traceparent },
          contentType: request.contentType,
          headers: request.headers
        })
      }

      /**
       * Returns a function that reads a page by its number as soon as the page is stored; `undefined` if the task has ended without
       * it. The subscription to hints ends with the scope.
       */
      const follow = Effect.fnUntraced(function*(owner: Owner, id: string) {
        const hinted = yield* hints.follow(recordKey(owner, id))
        return (page: number): Effect.Effect<NextPage | undefined, Unavailable> =>
          Effect.gen(function*() {
            for (let waitedMs = 0; waitedMs < silenceMs; waitedMs += lookEveryMs) {
              const found = yield* read(owner, id, page)
              if (Option.isSome(found)) return found.value
              const record = Option.getOrUndefined(yield* find(owner, id))
              if (record === undefined || hasEnded(record.status)) {
                // the page may have been written after the first look, but before the end
                const last = Option.getOrUndefined(yield* read(owner, id, page))
                const { pages = 0 } = Option.getOrUndefined(answerResult(record?.result)) ?? {}
                return last === undefined && page < pages ? yield* Unavailable.briefly() : last
              }
              yield* Effect.timeoutOption(hinted, lookEveryMs)
            }
            return "silence" as const
          })
      })

      /** The last page that begins with this event or an earlier one; perhaps an earlier page if a large event is near. */
      const seek = Effect.fnUntraced(function*(owner: Owner, id: string, event: number) {
        const isBefore = (page: number) =>
          Effect.map(
            read(owner, id, page),
            Option.exists(({ event: first = Number.POSITIVE_INFINITY }) => first <= event)
          )
        let [low, high] = [0, 1]
        while (yield* isBefore(high)) [low, high] = [high, high * 2]
        while (high - low > 1) {
          const middle = Math.floor((low + high) / 2)
          if (yield* isBefore(middle)) low = middle
          else high = middle
        }
        return low
      })

      return AnswerTasks.of({
        create: Effect.fnUntraced(function*({ body, owner, request, ...task }, keyed) {
          const bound = keyed === undefined ? task.id : yield* asUnavailable(keys.bind(owner, keyed, task.id))
          const known = bound === task.id ? Option.none() : yield* find(owner, bound)
          if (Option.isSome(known)) {
            yield* Submission.again(submitFor(owner), known.value)
            return known.value
          }
          // an earlier ingress may have bound the key and died before it created the task: create it under that id
          const id = bound
          yield* asUnavailable(counted.request(ownerToken(owner), body.length, quota)).pipe(
            Effect.tapError(() =>
              keyed === undefined || id !== task.id
                ? Effect.void
                : Effect.ignore(keys.free(bindingOf(owner, keyed), id))
            )
          )
          const count = yield* orUnavailable(pages.writeRequest(owner, id, body))
          const now = yield* Clock.currentTimeMillis
          const bodyHash = keyed?.bodyHash ?? hash("sha256", body, "hex")
          const binding = keyed === undefined ? {} : { binding: bindingOf(owner, keyed) }
          const record = TaskRecord.make(
            { ...task, ...binding, id, bodyHash, request: { ...request, pages: count, bytes: body.length } },
            now
          )
          const place = { records, submit: submitFor(owner), remove: () => stored.delete(recordKey(owner, id)) }
          const created = yield* Submission.create(place, recordKey(owner, id), record)
          // both requests have counted the bytes of one task
          if (!created.isNew) yield* Effect.ignore(TaskBytes.free(bucket, patience, recordKey(owner, id), record, 0))
          return created.task
        }),
        join: Effect.fnUntraced(function*(owner, keyed) {
          const found = yield* asUnavailable(keys.find(owner, keyed))
          if (Option.isSome(found)) yield* Submission.again(submitFor(owner), found.value)
          return found
        }),
        find,
        list: (owner, limit, after) =>
          orUnavailable(
            Effect.flatMap(stored.keys(TaskPages.recordKeys(owner)), (keys) => stored.page(keys, { limit, after }))
          ),
        cancel,
        delete: (owner, id) =>
          isAnswerTaskId(id)
            ? Effect.map(orUnavailable(stored.delete(recordKey(owner, id))), Option.isSome)
            : Effect.succeed(false),
        readRequest: (owner, { id, request }) => orUnavailable(pages.readRequest(owner, id, request?.pages ?? 0)),
        ended: (owner, id) =>
          Effect.scoped(Effect.gen(function*() {
            const hinted = yield* hints.follow(recordKey(owner, id))
            for (;;) {
              const task = yield* find(owner, id)
              if (Option.isNone(task) || hasEnded(task.value.status)) return task
              yield* Effect.timeoutOption(hinted, lookEveryMs)
            }
          })),
        head: (owner, id) =>
          Effect.scoped(Effect.gen(function*() {
            const next = yield* follow(owner, id)
            for (;;) {
              const page = yield* next(0)
              if (page !== "silence") return Option.fromNullishOr(page?.head)
            }
          })),
        pages: (owner, id, event = 0) =>
          Stream.unwrap(Effect.gen(function*() {
            const next = yield* follow(owner, id)
            const first = event === 0 ? 0 : yield* seek(owner, id, event)
            return Stream.unfold(first, (number) =>
              Effect.map(next(number), (page) =>
                page === undefined ? undefined : [page, page === "silence" ? number : number + 1] as const))
          }))
      })
    })
  ).pipe(Layer.provide(TaskQueue.layer))
}
