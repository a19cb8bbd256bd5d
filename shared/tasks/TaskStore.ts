/**
 * Stores tasks: their records in a bucket, changed only by compare-and-set, and requests and results in an object store.
 * Everything expires 24 hours after its last change.
 */
import { Clock, Context, Effect, Layer, Option, Result, Schedule, Schema, Semaphore, Stream } from "effect"
import { backOff, JetStreamFailed, whileJetStreamFails } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { openStore } from "../nats/ObjectStore.ts"
import { buckets, stores } from "../nats/Storage.ts"
import * as TaskRecord from "./TaskRecord.ts"
import * as TaskState from "./TaskState.ts"

/** An event was refused. `unknown`: the task does not exist or has expired. See `TaskState.ts` for the others. */
export class TaskRefused extends Schema.TaggedError<TaskRefused>()("TaskRefused", {
  refusal: Schema.Literals(["ended", "fenced", "unknown", "unreadable"])
}) {}

/** How long a record and its objects are stored after the last change, in milliseconds: 24 hours. */
export const keptForMs = buckets.videoTasks.ttlMs

/** A task that this worker has claimed. */
export interface ClaimedTask {
  /** The record after this worker's last write. */
  readonly current: () => TaskRecord.TaskRecord
  /** Fails with `TaskRefused` if this worker has lost the task: all work on it must stop. */
  readonly record: (event: HolderEvent) => Effect.Effect<TaskRecord.TaskRecord, TaskRefused | JetStreamFailed>
}

/** An event that only the task's worker may record. */
type HolderEvent = DistributiveOmit<Extract<TaskState.TaskEvent, { readonly holder: unknown }>, "holder">
type DistributiveOmit<A, Keys extends PropertyKey> = A extends unknown ? Omit<A, Keys> : never

/** Results are stored in parts of this many bytes, so that no process holds more than one part. */
const partBytes = 1024 * 1024

/** How long one operation on the object store may take, in milliseconds. */
const storeWithinMs = 10_000

export class TaskStore extends Context.Service<TaskStore, {
  /**
   * Stores a new task; returns the existing task if the id is taken. The first record of a request also stores the body,
   * for all of them.
   */
  readonly create: (
    task: TaskRecord.TaskRecord,
    body: Uint8Array
  ) => Effect.Effect<TaskRecord.TaskRecord, JetStreamFailed>
  readonly find: (id: string) => Effect.Effect<Option.Option<TaskRecord.TaskRecord>, JetStreamFailed>
  /** Returns the task: cancelled, or already ended. */
  readonly cancel: (id: string) => Effect.Effect<TaskRecord.TaskRecord, TaskRefused | JetStreamFailed>
  /** Claims the task for a worker. */
  readonly claim: (id: string, worker: string) => Effect.Effect<ClaimedTask, TaskRefused | JetStreamFailed>
  /** The request's body as the client sent it. */
  readonly readBody: (task: TaskRecord.TaskRecord) => Effect.Effect<Uint8Array, JetStreamFailed>
  /** Stores a large result. May be repeated; clients cannot read it before the task is completed. */
  readonly writeContent: (id: string, bytes: Uint8Array) => Effect.Effect<void, JetStreamFailed>
  /** The bytes from `from` up to but not including `until`. */
  readonly readContent: (id: string, from: number, until: number) => Stream.Stream<Uint8Array, JetStreamFailed>
}>()("shared/tasks/TaskStore") {
  /** Retries everything that fails with `JetStreamFailed` for this long, in milliseconds. */
  static readonly layer = ({ patienceMs }: { readonly patienceMs: number }) => Layer.effect(TaskStore, open(patienceMs))
}

interface Stored {
  readonly task: TaskRecord.TaskRecord
  readonly revision: number
}

const open = Effect.fn("TaskStore.open")(function*(patienceMs: number) {
  const bucket = yield* openBucket(buckets.videoTasks).pipe(Effect.retry(whileJetStreamFails))
  const store = yield* openStore(stores.videoContent).pipe(Effect.retry(whileJetStreamFails))
  const patience = backOff.pipe(Schedule.upTo({ duration: patienceMs }))
  const again = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.retry(effect, patience)

  const refuse = (refusal: TaskRefused["refusal"]) => Effect.fail(new TaskRefused({ refusal }))

  const load = Effect.fnUntraced(function*(id: string) {
    const found = Option.getOrUndefined(yield* again(bucket.getRevision(id)))
    if (found === undefined) return yield* refuse("unknown")
    const task = Option.getOrUndefined(TaskRecord.decode(found.value))
    return task === undefined ? yield* refuse("unreadable") : { task, revision: found.revision }
  })

  const find = (id: string) =>
    load(id).pipe(
      Effect.map(({ task }) => Option.some(task)),
      Effect.catchTag("TaskRefused", () => Effect.succeedNone)
    )

  /** Applies the event and writes the record; starts again from the new record if another write came first. */
  const change = (
    stored: Stored,
    event: TaskState.TaskEvent
  ): Effect.Effect<Stored, TaskRefused | JetStreamFailed> =>
    Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const next = TaskState.transition(stored.task, event, now)
      if (Result.isFailure(next)) return yield* new TaskRefused({ refusal: next.failure })
      // the same text at each try: `update` recognises its own write if the answer was lost
      const written = yield* again(bucket.update(stored.task.id, TaskRecord.encode(next.success), stored.revision))
      if (Option.isSome(written)) return { task: next.success, revision: written.value }
      return yield* change(yield* load(stored.task.id), event)
    })

  const inStore = <A>(effect: Effect.Effect<A, JetStreamFailed>): Effect.Effect<A, JetStreamFailed> =>
    again(effect.pipe(
      Effect.timeoutOrElse({
        duration: storeWithinMs,
        orElse: () => Effect.fail(new JetStreamFailed({ detail: "the object store did not answer in time" }))
      })
    ))

  const read = (name: string): Effect.Effect<Uint8Array, JetStreamFailed> =>
    Effect.flatMap(inStore(store.get(name)), (bytes) =>
      Option.isSome(bytes)
        ? Effect.succeed(bytes.value)
        : Effect.fail(new JetStreamFailed({ detail: "an object of the task is missing" })))

  return TaskStore.of({
    create: Effect.fn("TaskStore.create")(function*(task, body) {
      const known = yield* find(task.id)
      if (Option.isSome(known)) return known.value
      if (task.index === 0) yield* inStore(store.put(bodyName(task), body))
      if (yield* again(bucket.create(task.id, TaskRecord.encode(task)))) return task
      return Option.getOrElse(yield* find(task.id), () => task)
    }),
    find,
    cancel: Effect.fn("TaskStore.cancel")(function*(id) {
      const stored = yield* load(id)
      if (TaskState.hasEnded(stored.task.status)) return stored.task
      return yield* change(stored, { event: "cancelled" }).pipe(
        Effect.catchTag("TaskRefused", () => load(id)),
        Effect.map(({ task }) => task)
      )
    }),
    claim: Effect.fn("TaskStore.claim")(function*(id, worker) {
      let stored = yield* change(yield* load(id), { event: "claimed", worker })
      const holder: TaskRecord.Holder = { worker, claim: stored.task.claims }
      const turn = yield* Semaphore.make(1)
      return {
        current: () => stored.task,
        record: (event) =>
          turn.withPermit(Effect.suspend(() => change(stored, { ...event, holder } as TaskState.TaskEvent))).pipe(
            Effect.map((changed) => {
              stored = changed
              return changed.task
            })
          )
      }
    }),
    readBody: (task) => read(bodyName(task)),
    writeContent: Effect.fn("TaskStore.writeContent")(function*(id, bytes) {
      for (let at = 0; at < bytes.length; at += partBytes) {
        yield* inStore(store.put(partName(id, at / partBytes), bytes.subarray(at, at + partBytes)))
      }
    }),
    readContent: (id, from, until) =>
      Stream.range(Math.floor(from / partBytes), Math.ceil(until / partBytes) - 1).pipe(
        Stream.mapEffect((part) =>
          Effect.map(read(partName(id, part)), (bytes) => {
            const start = part * partBytes
            return bytes.subarray(Math.max(0, from - start), until - start)
          })
        )
      )
  })
})

/** By hash, so that two requests with one id never overwrite each other's body. */
const bodyName = ({ bodyHash, id }: TaskRecord.TaskRecord): string => `${TaskRecord.firstIdOf(id)}/${bodyHash}`
const partName = (id: string, part: number): string => `${id}/${part}`
