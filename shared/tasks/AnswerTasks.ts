/**
 * Tasks whose results are the answers to requests, as ingress sees them: created for a request, listed, read, cancelled and
 * deleted, each only by its owner.
 */
import { Clock, Context, Effect, Layer, Option, Schedule, Stream } from "effect"
import { hash } from "node:crypto"
import type { TaskQueueName } from "../bus/protocol/Subjects.ts"
import { type QueueFull, Unavailable } from "../contract/JobError.ts"
import type { Owner } from "../contract/Owner.ts"
import { backOff, whileJetStreamFails } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import * as Seal from "../records/Seal.ts"
import * as RecordStore from "./RecordStore.ts"
import * as TaskPages from "./TaskPages.ts"
import { TaskQueue } from "./TaskQueue.ts"
import * as TaskRecord from "./TaskRecord.ts"
import { splitFirstPage } from "./TaskReply.ts"
import { hasEnded } from "./TaskState.ts"

export interface NewAnswerTask extends Omit<TaskRecord.NewTask, "bodyHash" | "count" | "index" | "request"> {
  readonly owner: Owner
  readonly queue: TaskQueueName
  readonly request: Omit<TaskRecord.AnswerRequest, "pages">
  readonly body: Uint8Array
}

/** An answer, while it is made or afterwards. */
export interface StoredAnswer {
  readonly status: number
  readonly contentType: string
  readonly headers: Readonly<Record<string, string>>
  /** All bytes from the first one on, up to the task's end. */
  readonly bytes: Stream.Stream<Uint8Array, Unavailable>
}

/** How long to wait for the store before a client gets 503, in milliseconds. */
const patienceMs = 5_000

/** How often a reader looks for the next page of an answer that is being made, in milliseconds: as often as pages are written. */
const lookEveryMs = 250

/** How long a task is kept after its end, in milliseconds. */
export const keptForMs = 24 * 60 * 60_000

const unavailable = new Unavailable({ retryAfterMs: 1_000 })
const orUnavailable = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, Unavailable> =>
  Effect.mapError(effect, () => unavailable)

/** The form of the ids that ingress makes. No other text from a client may become part of a key. */
const idPattern = /^(?:resp|task)_[0-9a-f]{32}$/

/** In the order of their times, whatever their prefixes. */
const suffixOf = (id: string): string => id.slice(id.indexOf("_") + 1)

export class AnswerTasks extends Context.Service<AnswerTasks, {
  /** Stores and submits a task. Fails with `QueueFull` if the owner has too many that wait. */
  readonly create: (task: NewAnswerTask) => Effect.Effect<TaskRecord.TaskRecord, QueueFull | Unavailable>
  /** `None` if the task is unknown, expired or another owner's. */
  readonly find: (owner: Owner, id: string) => Effect.Effect<Option.Option<TaskRecord.TaskRecord>, Unavailable>
  /** At most `limit` tasks, the latest first, before the one with the id `after`; and whether there are more. */
  readonly list: (
    owner: Owner,
    limit: number,
    after: string | undefined
  ) => Effect.Effect<
    { readonly tasks: ReadonlyArray<TaskRecord.TaskRecord>; readonly hasMore: boolean },
    Unavailable
  >
  /** Cancels a task that has not ended, and returns it. `None` if there is none. */
  readonly cancel: (owner: Owner, id: string) => Effect.Effect<Option.Option<TaskRecord.TaskRecord>, Unavailable>
  /** Deletes a task with its request and answer. Stops it first. */
  readonly delete: (owner: Owner, id: string) => Effect.Effect<boolean, Unavailable>
  /** The body of the request. `None` if it is missing. */
  readonly readRequest: (
    owner: Owner,
    task: TaskRecord.TaskRecord
  ) => Effect.Effect<Option.Option<Uint8Array>, Unavailable>
  /** Waits until the answer begins. `None` if the task has ended without one. */
  readonly answer: (owner: Owner, id: string) => Effect.Effect<Option.Option<StoredAnswer>, Unavailable>
}>()("shared/tasks/AnswerTasks") {
  /** Reads `GATEWAY_SECRET`. */
  static readonly layer = Layer.effect(
    AnswerTasks,
    Effect.gen(function*() {
      const bucket = yield* openBucket(buckets.tasks).pipe(Effect.retry(whileJetStreamFails))
      const seal = yield* Seal.fromSecret
      const queue = yield* TaskQueue
      const patience = backOff.pipe(Schedule.upTo({ duration: patienceMs }))
      const records = RecordStore.make(bucket, patience)
      const pages = TaskPages.make(bucket, seal, patience)
      const { recordKey } = TaskPages

      const find = (owner: Owner, id: string) =>
        idPattern.test(id) ? orUnavailable(records.find(recordKey(owner, id))) : Effect.succeedNone

      const cancel = (owner: Owner, id: string) =>
        !idPattern.test(id) ? Effect.succeedNone : records.cancel(recordKey(owner, id)).pipe(
          Effect.map(Option.some),
          Effect.catchTags({
            TaskRefused: () => Effect.succeedNone,
            JetStreamFailed: () => Effect.fail(unavailable)
          })
        )

      /** A page of an answer; `None` if the task has ended without it. */
      const nextPage = (
        owner: Owner,
        id: string,
        page: number
      ): Effect.Effect<Option.Option<Uint8Array>, Unavailable> =>
        Effect.gen(function*() {
          for (;;) {
            // the record first: an ended task has all its pages
            const record = Option.getOrUndefined(yield* find(owner, id))
            const found = yield* orUnavailable(pages.read(owner, id, page))
            if (Option.isSome(found) || record === undefined || hasEnded(record.status)) return found
            yield* Effect.sleep(lookEveryMs)
          }
        })

      return AnswerTasks.of({
        create: Effect.fnUntraced(function*({ body, owner, queue: name, request, ...task }) {
          const { id, model, operation, pool, tenant, traceparent } = task
          const count = yield* orUnavailable(pages.writeRequest(owner, id, body))
          const now = yield* Clock.currentTimeMillis
          const bodyHash = hash("sha256", body, "hex")
          const record = TaskRecord.make({ ...task, bodyHash, request: { ...request, pages: count } }, now)
          yield* orUnavailable(records.create(recordKey(owner, id), record))
          yield* queue.submit({
            queue: name,
            ...{ id, model, operation, owner, pool, tenant, traceparent },
            contentType: request.contentType,
            headers: request.headers
          }).pipe(
            // the client does not know the task
            Effect.tapError(() => Effect.forkDetach(Effect.ignore(cancel(owner, id))))
          )
          return record
        }),
        find,
        list: Effect.fnUntraced(function*(owner, limit, after) {
          const keys = yield* orUnavailable(Effect.retry(bucket.keys(TaskPages.recordKeys(owner)), patience))
          const ids = keys.map((key) => key.slice(key.indexOf(".") + 1))
            .filter((id) => after === undefined || suffixOf(id) < suffixOf(after))
            .toSorted((one, other) => suffixOf(one) < suffixOf(other) ? 1 : -1)
          const tasks: Array<TaskRecord.TaskRecord> = []
          // keys of deleted tasks are listed, too
          for (let at = 0; at < ids.length && tasks.length <= limit; at += limit) {
            const found = yield* Effect.forEach(ids.slice(at, at + limit), (id) => find(owner, id), { concurrency: 16 })
            tasks.push(...found.flatMap((one) => Option.toArray(one)))
          }
          return { tasks: tasks.slice(0, limit), hasMore: tasks.length > limit }
        }),
        cancel,
        delete: (owner, id) =>
          Effect.flatMap(
            cancel(owner, id),
            (task) =>
              Option.isNone(task) ? Effect.succeed(false) : Effect.as(orUnavailable(pages.delete(owner, id)), true)
          ),
        readRequest: (owner, { id, request }) => orUnavailable(pages.readRequest(owner, id, request?.pages ?? 0)),
        answer: Effect.fnUntraced(function*(owner, id) {
          const first = Option.map(yield* nextPage(owner, id, 0), splitFirstPage)
          return Option.flatMap(first, ({ bytes, head }) =>
            Option.map(head, (head): StoredAnswer => ({
              ...head,
              bytes: Stream.concat(
                Stream.succeed(bytes),
                Stream.unfold(1, (page) =>
                  Effect.map(nextPage(owner, id, page), (found) =>
                    Option.getOrUndefined(Option.map(found, (bytes) =>
                      [bytes, page + 1] as const))))
              )
            })))
        })
      })
    })
  ).pipe(Layer.provide(TaskQueue.layer))
}
