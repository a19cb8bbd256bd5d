/** Batches as ingress sees them: created, listed, read, cancelled and deleted, each only by its owner. */
import { Clock, Context, Effect, Layer, Option, Schedule } from "effect"
import { batchPool, batchQueue } from "../bus/protocol/Subjects.ts"
import { batchAgeMs } from "../bus/protocol/Timings.ts"
import { type QueueFull, Unavailable } from "../contract/JobError.ts"
import type { Owner } from "../contract/Owner.ts"
import { backOff, type JetStreamFailed, whileJetStreamFails } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import { bindingOf, type KeyedRequest, type OtherBody } from "../records/KeyBindings.ts"
import { newSuffix } from "../tasks/answers/AnswerTaskId.ts"
import * as TaskKeys from "../tasks/answers/TaskKeys.ts"
import { recordKey, recordKeys } from "../tasks/answers/TaskPages.ts"
import * as RecordStore from "../tasks/RecordStore.ts"
import { TaskQueue } from "../tasks/TaskQueue.ts"
import * as TaskRecord from "../tasks/TaskRecord.ts"
import { hasEnded } from "../tasks/TaskState.ts"
import { type Batch, type BatchRequest, isBatchId } from "./BatchRecord.ts"
import { batchOf } from "./BatchState.ts"

export interface NewBatch {
  readonly owner: Owner
  /** The id of the key that pays for it. */
  readonly tenant: string
  /** The name of the operation of all requests. */
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
  /** The last batch of the page before it, or the first of the page after it. */
  readonly after?: string | undefined
  readonly before?: string | undefined
  /** Only batches of this operation. */
  readonly operation?: string | undefined
}

/** How long to wait for the store before a client gets 503, in milliseconds. */
const patienceMs = 5_000

/**
 * When a batch without a holder is submitted again, in milliseconds after its creation: its ingress may have died before it did so.
 * Within two minutes the queue drops copies. A repeated request submits it at any time before, a poll only later.
 */
const submitAgain = { polledAfter: 10_000, before: 100_000 }

/** Records that are requested at the same time. */
const concurrency = 16

const orUnavailable = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, Unavailable> =>
  Effect.mapError(effect, Unavailable.briefly)

export class Batches extends Context.Service<Batches, {
  /**
   * Stores and submits a batch, or finds the one that the request's idempotency key stands for. Fails with `QueueFull` if the owner
   * has too many that wait.
   */
  readonly create: (
    batch: NewBatch,
    keyed?: KeyedRequest
  ) => Effect.Effect<Created, OtherBody | QueueFull | Unavailable>
  /** The batch that an idempotency key stands for, as it was when it was created. */
  readonly join: (owner: Owner, keyed: KeyedRequest) => Effect.Effect<Option.Option<Batch>, OtherBody | Unavailable>
  /** `None` if the batch is unknown, expired or another owner's. */
  readonly find: (owner: Owner, id: string) => Effect.Effect<Option.Option<Batch>, Unavailable>
  /** The latest first, and whether there are more. */
  readonly list: (
    owner: Owner,
    asked: BatchesAsked
  ) => Effect.Effect<{ readonly batches: ReadonlyArray<Batch>; readonly hasMore: boolean }, Unavailable>
  /** Asks for an end of the batch, unless it has ended. `None` if there is none. */
  readonly cancel: (owner: Owner, id: string) => Effect.Effect<Option.Option<Batch>, Unavailable>
  /** Deletes a batch that has ended. Its files stay. */
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
      const failing = <A, E>(effect: Effect.Effect<A, E | JetStreamFailed>) =>
        Effect.catchTag(effect, "JetStreamFailed", () => Effect.fail(Unavailable.briefly()))

      const submit = (owner: Owner, { id, operation, tenant, traceparent }: TaskRecord.TaskRecord) =>
        queue.submit({ queue: batchQueue, pool: batchPool, id, operation, model: "", owner, tenant, traceparent })

      const submitAgainIfLost = Effect.fnUntraced(function*(owner: Owner, task: TaskRecord.TaskRecord, afterMs = 0) {
        const age = (yield* Clock.currentTimeMillis) - task.created
        if (task.claims === 0 && age > afterMs && age < submitAgain.before) yield* Effect.ignore(submit(owner, task))
      })

      const findTask = (owner: Owner, id: string) =>
        isBatchId(id) ? orUnavailable(records.find(recordKey(owner, id))) : Effect.succeedNone

      const asCreated = (task: TaskRecord.TaskRecord) =>
        Effect.orDie(Effect.fromOption(batchOf(TaskRecord.make(task, task.created))))

      /** Frees its idempotency key first: without its record, a key stands for a batch that is about to be created. */
      const remove = Effect.fnUntraced(function*(owner: Owner, { binding, id }: TaskRecord.TaskRecord) {
        if (binding !== undefined) yield* keys.free(binding, id)
        yield* Effect.retry(bucket.delete(recordKey(owner, id)), patience)
      })

      const find = (owner: Owner, id: string) => Effect.map(findTask(owner, id), Option.flatMap(batchOf))

      return Batches.of({
        create: Effect.fn("Batches.create")(function*({ operation, owner, request, tenant, traceparent }, keyed) {
          const now = yield* Clock.currentTimeMillis
          const made = `batch_${newSuffix(now)}`
          const id = keyed === undefined ? made : yield* failing(keys.bind(owner, keyed, made))
          const known = id === made ? Option.none() : yield* findTask(owner, id)
          if (Option.isSome(known)) {
            yield* submitAgainIfLost(owner, known.value)
            return { batch: yield* asCreated(known.value), isRepeated: true }
          }
          const binding = keyed === undefined ? undefined : bindingOf(owner, keyed)
          // under the id of an ingress that has died before it could do so, if there was one
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
          yield* orUnavailable(records.create(recordKey(owner, id), task))
          // the client does not know the batch
          yield* Effect.tapError(submit(owner, task), () => Effect.ignore(remove(owner, task)))
          return { batch: yield* asCreated(task), isRepeated: false }
        }),
        join: Effect.fn("Batches.join")(function*(owner, keyed) {
          const known = yield* failing(keys.find(owner, keyed))
          if (Option.isNone(known)) return Option.none()
          yield* submitAgainIfLost(owner, known.value)
          return Option.some(yield* asCreated(known.value))
        }),
        find: Effect.fn("Batches.find")(function*(owner, id) {
          const found = yield* findTask(owner, id)
          if (Option.isSome(found)) yield* submitAgainIfLost(owner, found.value, submitAgain.polledAfter)
          return Option.flatMap(found, batchOf)
        }),
        list: Effect.fn("Batches.list")(function*(owner, { after, before, limit, operation }) {
          const keys = yield* orUnavailable(Effect.retry(bucket.keys(recordKeys(owner)), patience))
          const ids = keys.map((key) => key.slice(key.indexOf(".") + 1)).toSorted().toReversed()
          const rest = ids.filter((id) => (after === undefined || id < after) && (before === undefined || id > before))
          // of the page before a batch, its neighbours
          const inOrder = before === undefined ? rest : rest.toReversed()
          const batches: Array<Batch> = []
          // keys of deleted batches are listed, too
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
            Effect.catchTags({
              TaskRefused: () => Effect.succeedNone,
              JetStreamFailed: () => Effect.fail(Unavailable.briefly())
            })
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
