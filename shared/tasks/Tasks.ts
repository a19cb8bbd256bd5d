/**
 * Creates, reads and cancels tasks of videos for ingress. A request for several results has several records, in order, which
 * clients see as one task.
 */
import { Clock, Context, Effect, Layer, Option, Schedule } from "effect"
import { orUnavailable, type QueueFull, type Unavailable } from "../contract/JobError.ts"
import { asUnavailable, backOff, whileJetStreamFails } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { buckets } from "../nats/Storage.ts"
import type { TaskQueueName } from "../bus/protocol/Subjects.ts"
import { OtherBody } from "../records/KeyBindings.ts"
import { digest } from "../records/OwnerToken.ts"
import * as Submission from "./Submission.ts"
import * as TaskBytes from "./TaskBytes.ts"
import { TaskQueue } from "./TaskQueue.ts"
import * as TaskRecord from "./TaskRecord.ts"
import { keptForMs, TaskStore } from "./TaskStore.ts"

type NewTask = Omit<TaskRecord.NewTask, "index">

export type Records = readonly [TaskRecord.TaskRecord, ...Array<TaskRecord.TaskRecord>]

export { OtherBody }

/** The least that each video counts towards its owner's quota, so that the quota also limits the number of tasks. */
const leastBytes = 128 * 1024

/** How long to wait for the store before a client gets 503, in milliseconds. */
const patienceMs = 5_000

export class Tasks extends Context.Service<Tasks, {
  /**
   * Stores and submits the tasks of a request, and returns when JetStream has stored records and jobs. If several requests have the
   * same id, one creates the task and the others find it. `mayRepeat`: the client can send the request again under the same id. If
   * not, a task that cannot be submitted is cancelled: the client would pay for results of a task that it does not know. Fails with
   * `TaskStorageFull` if the owner's tasks would store too much.
   */
  readonly create: (
    task: NewTask,
    body: Uint8Array,
    mayRepeat: boolean
  ) => Effect.Effect<Records, QueueFull | Unavailable | OtherBody | TaskBytes.TaskStorageFull>
  /** One record of a request, by default the first. `None` if it is unknown or has expired. */
  readonly find: (id: string, index?: number) => Effect.Effect<Option.Option<TaskRecord.TaskRecord>, Unavailable>
  /** All records of a request. `None` if one has expired. */
  readonly withOthers: (first: TaskRecord.TaskRecord) => Effect.Effect<Option.Option<Records>, Unavailable>
  /** Submits waiting tasks again if their submission may have been lost. */
  readonly resubmit: (records: Records) => Effect.Effect<void>
  /** Cancels those that have not ended. Returns the new records; `None` if one has expired. */
  readonly cancel: (records: Records) => Effect.Effect<Option.Option<Records>, Unavailable>
}>()("shared/tasks/Tasks") {
  /** Provides `Tasks` for the tasks of one queue. Reads `GATEWAY_TASKS_MIB`. */
  static readonly layer = (name: TaskQueueName) =>
    Layer.effect(
      Tasks,
      Effect.gen(function*() {
        const store = yield* TaskStore
        const queue = yield* TaskQueue
        const bucket = yield* openBucket(buckets.tasks).pipe(Effect.retry(whileJetStreamFails))
        const counted = yield* TaskBytes.make(bucket, backOff.pipe(Schedule.upTo({ duration: patienceMs })))
        const quota = yield* TaskBytes.quotaMiB

        const submit = ({ id, model, operation, pool, tenant, traceparent }: TaskRecord.TaskRecord) =>
          queue.submit({ queue: name, id, model, operation, pool, tenant, traceparent })

        const cancel = (records: Records) =>
          Effect.forEach(records, ({ id }) => store.cancel(id), { concurrency: "unbounded" }).pipe(
            Effect.map(([first, ...others]) => Option.some<Records>([first!, ...others])),
            Effect.catchTag("TaskRefused", () => Effect.succeedNone),
            asUnavailable
          )

        /** Removes the tasks of a request that cannot be repeated: a repeat would need the body. */
        const withdraw = (records: Records) => Effect.andThen(cancel(records), store.deleteBody(records[0]))

        /** Counts a request towards the owner's quota. The videos themselves do not count: their size is not known yet. */
        const count = ({ count = 1, tenant, ownerId = tenant }: NewTask, body: Uint8Array) =>
          asUnavailable(
            counted.request(digest("videos", ownerId), Math.max(leastBytes * count, body.length), quota)
          )

        const find = (id: string, index = 0) => orUnavailable(store.find(TaskRecord.siblingId(id, index)))

        return Tasks.of({
          create: Effect.fnUntraced(function*(task, body, mayRepeat) {
            const known = Option.getOrUndefined(yield* find(task.id))
            if (known === undefined) yield* count(task, body)
            const now = yield* Clock.currentTimeMillis
            const add = (record: TaskRecord.TaskRecord) => orUnavailable(store.create(record, body))
            const first = known ?? (yield* add(TaskRecord.make(task, now)))
            if (first.bodyHash !== task.bodyHash) return yield* new OtherBody()
            // if a record of an old task is missing, it has expired: a new one would do and charge for the work again
            const siblings = now - first.created < keptForMs / 2 ? TaskRecord.siblingsOf(first, now) : []
            const records: Records = [first, ...yield* Effect.forEach(siblings, add, { concurrency: "unbounded" })]
            yield* Effect.forEach(records.filter(({ status }) => status === "queued"), submit, { discard: true }).pipe(
              Effect.tapError(() => mayRepeat ? Effect.void : Effect.forkDetach(Effect.ignore(withdraw(records))))
            )
            return records
          }),
          find,
          withOthers: Effect.fnUntraced(function*(first) {
            const indexes = Array.from({ length: first.count - 1 }, (_, before) => before + 1)
            const others = Option.all(
              yield* Effect.forEach(indexes, (index) => find(first.id, index), { concurrency: "unbounded" })
            )
            return Option.map(others, (others): Records => [first, ...others])
          }),
          resubmit: (records) =>
            Effect.forEach(records, (task) => Submission.againWhenPolled(submit, task), { discard: true }),
          cancel
        })
      })
    ).pipe(Layer.provide(TaskQueue.layer), Layer.provideMerge(TaskStore.layer({ patienceMs })))
}
