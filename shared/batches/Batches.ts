/** Creates, lists, reads, cancels and deletes batches for ingress. Each batch is accessible only to its owner. */
import { Clock, Context, Effect, Layer, Option, Schedule } from "effect"
import { batchPool, batchQueue } from "../bus/protocol/Subjects.ts"
import { batchAgeMs } from "../bus/protocol/Timings.ts"
import { orUnavailable, type QueueFull, type Unavailable } from "../contract/JobError.ts"
import type { Owner } from "../contract/Owner.ts"
import { asUnavailable, backOff, whileJetStreamFails } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import { bindingOf, type KeyedRequest, type OtherBody } from "../records/KeyBindings.ts"
import { newSuffix } from "../tasks/answers/AnswerTaskId.ts"
import * as TaskKeys from "../tasks/answers/TaskKeys.ts"
import { recordKey, recordKeys } from "../tasks/answers/TaskPages.ts"
import * as RecordStore from "../tasks/RecordStore.ts"
import * as Submission from "../tasks/Submission.ts"
import { TaskQueue } from "../tasks/TaskQueue.ts"
import * as TaskRecord from "../tasks/TaskRecord.ts"
import { hasEnded } from "../tasks/TaskState.ts"
import { type Batch, type BatchRequest, isBatchId } from "./BatchRecord.ts"
import { batchOf } from "./BatchState.ts"

export interface NewBatch {
  readonly owner: Owner
  /** The id of the key that pays for the batch. */
  readonly tenant: string
  /** The name of the operation, which all requests share. */
  readonly operation: string
  readonly request: BatchRequest
  readonly traceparent: string | undefined
}

/** A batch as it was when it was created. */
export interface Created {
  readonly batch: Batch
  /** Whether an earlier request with the same idempotency key has created it. */
  readonly isRepeated: boolean
}

export interface BatchesAsked {
  readonly limit: number
  /** The page after this batch, or the page before this one. */
  readonly after?: string | undefined
  readonly before?: string | undefined
  /** Only batches of this operation. */
  readonly operation?: string | undefined
}

/** How long to wait for the store before a client gets 503, in milliseconds. */
const patienceMs = 5_000

/** Maximum number of records that are read concurrently. */
const concurrency = 16

export class Batches extends Context.Service<Batches, {
  /**
   * Stores and submits a batch, or returns the existing batch of the request's idempotency key. Fails with `QueueFull` if too many
   * batches of the owner wait.
   */
  readonly create: (
    batch: NewBatch,
    keyed?: KeyedRequest
  ) => Effect.Effect<Created, OtherBody | QueueFull | Unavailable>
  /** The existing batch of an idempotency key, as it was when it was created. */
  readonly join: (owner: Owner, keyed: KeyedRequest) => Effect.Effect<Option.Option<Batch>, OtherBody | Unavailable>
  /** `None` if the batch is unknown, expired or another owner's. */
  readonly find: (owner: Owner, id: string) => Effect.Effect<Option.Option<Batch>, Unavailable>
  /** A page of batches, the latest first, and whether there are more. */
  readonly list: (
    owner: Owner,
    asked: BatchesAsked
  ) => Effect.Effect<{ readonly batches: ReadonlyArray<Batch>; readonly hasMore: boolean }, Unavailable>
  /** Asks the holder to end the batch, unless it has ended. `None` if there is no such batch. */
  readonly cancel: (owner: Owner, id: string) => Effect.Effect<Option.Option<Batch>, Unavailable>
  /** Deletes a batch that has ended, but not its files. */
  readonly delete: (owner: Owner, id: string) => Effect.Effect<void, Unavailable>
}>()("shared/batches/Batches") {
  static readonly layer = Layer.effect(
    Batches,
    Effect.gen(function*() {
      const bucket = yield* openBucket(buckets.batches).pipe(Effect.retry(whileJetStreamFails))
      const queue = yield* TaskQueue
      const patience = backOff.pipe(Schedule.upTo({ duration: patienceMs }))
      const records = RecordStore.make(bucket, patience)
      const keys = TaskKeys.make(bucket, records, patience)
      const submitFor = (owner: Owner): Submission.Submit => ({ id, operation, tenant, traceparent }) =>
        queue.submit({ queue: batchQueue, pool: batchPool, id, operation, model: "", owner, tenant, traceparent })

      const findTask = (owner: Owner, id: string) =>
        isBatchId(id) ? orUnavailable(records.find(recordKey(owner, id))) : Effect.succeedNone

      const asCreated = (task: TaskRecord.TaskRecord) =>
        Effect.orDie(Effect.fromOption(batchOf(TaskRecord.make(task, task.created))))

      /** Frees the idempotency key first: a key without a record would stand for a batch that is about to be created. */
      const remove = Effect.fnUntraced(function*(owner: Owner, { binding, id }: TaskRecord.TaskRecord) {
        if (binding !== undefined) yield* keys.free(binding, id)
        yield* Effect.retry(bucket.purge(recordKey(owner, id)), patience)
      })

      const find = (owner: Owner, id: string) => Effect.map(findTask(owner, id), Option.flatMap(batchOf))

      return Batches.of({
        create: Effect.fn("Batches.create")(function*({ operation, owner, request, tenant, traceparent }, keyed) {
          const now = yield* Clock.currentTimeMillis
          const made = `batch_${newSuffix(now)}`
          const id = keyed === undefined ? made : yield* asUnavailable(keys.bind(owner, keyed, made))
          const known = id === made ? Option.none() : yield* findTask(owner, id)
          if (Option.isSome(known)) {
            yield* Submission.again(submitFor(owner), known.value)
            return { batch: yield* asCreated(known.value), isRepeated: true }
          }
          const binding = keyed === undefined ? undefined : bindingOf(owner, keyed)
          // an earlier ingress may have bound the key and died before it created the batch: create it under that id
          const task = TaskRecord.make({
            ...{ id, tenant, operation, pool: batchPool },
            model: request.model ?? "",
            bodyHash: request.input,
            ...(traceparent === undefined ? {} : { traceparent }),
            ...(binding === undefined ? {} : { binding }),
            details: request,
            expires: now + batchAgeMs,
            announcedAs: "batch"
          }, now)
          const place = {
            records,
            submit: submitFor(owner),
            remove: (task: TaskRecord.TaskRecord) => remove(owner, task)
          }
          const created = yield* Submission.create(place, recordKey(owner, id), task)
          return { batch: yield* asCreated(created.task), isRepeated: !created.isNew }
        }),
        join: Effect.fn("Batches.join")(function*(owner, keyed) {
          const known = yield* asUnavailable(keys.find(owner, keyed))
          if (Option.isNone(known)) return Option.none()
          yield* Submission.again(submitFor(owner), known.value)
          return Option.some(yield* asCreated(known.value))
        }),
        find: Effect.fn("Batches.find")(function*(owner, id) {
          const found = yield* findTask(owner, id)
          if (Option.isSome(found)) yield* Submission.againWhenPolled(submitFor(owner), found.value)
          return Option.flatMap(found, batchOf)
        }),
        list: Effect.fn("Batches.list")(function*(owner, { after, before, limit, operation }) {
          const keys = yield* orUnavailable(Effect.retry(bucket.keys(recordKeys(owner)), patience))
          const ids = keys.map((key) => key.slice(key.indexOf(".") + 1)).toSorted().toReversed()
          const rest = ids.filter((id) => (after === undefined || id < after) && (before === undefined || id > before))
          // the page before a batch consists of its nearest neighbours
          const inOrder = before === undefined ? rest : rest.toReversed()
          const batches: Array<Batch> = []
          // batches may be of other operations or deleted meanwhile, so more are read until the page is full
          for (let at = 0; at < inOrder.length && batches.length <= limit; at += concurrency) {
            const page = inOrder.slice(at, at + concurrency)
            const found = yield* Effect.forEach(page, (id) => find(owner, id), { concurrency })
            batches.push(
              ...found.flatMap((one) => Option.toArray(one)).filter(({ task }) =>
                operation === undefined || task.operation === operation
              )
            )
          }
          const page = batches.slice(0, limit)
          return { batches: before === undefined ? page : page.toReversed(), hasMore: batches.length > limit }
        }),
        cancel: Effect.fn("Batches.cancel")(function*(owner, id) {
          const found = yield* findTask(owner, id)
          if (Option.isNone(found) || hasEnded(found.value.status)) return Option.flatMap(found, batchOf)
          const stopped = records.stop(recordKey(owner, id)).pipe(
            Effect.asSome,
            Effect.catchTag("TaskRefused", () => Effect.succeedNone),
            asUnavailable
          )
          return Option.flatMap(yield* stopped, batchOf)
        }),
        delete: Effect.fn("Batches.delete")(function*(owner, id) {
          const found = yield* findTask(owner, id)
          if (Option.isSome(found)) yield* orUnavailable(remove(owner, found.value))
        })
      })
    })
  ).pipe(Layer.provide(TaskQueue.layer))
}
