/**
 * Stores the tasks of videos: their records in a bucket, by id, and their requests and results in an object store. Everything
 * expires 24 hours after its last change.
 */
import { Context, Effect, Layer, Schedule, Stream } from "effect"
import { backOff, JetStreamFailed, whileJetStreamFails } from "../nats/JetStream.ts"
import { openBucket } from "../nats/KeyValue.ts"
import { openStore } from "../nats/ObjectStore.ts"
import { buckets, stores } from "../nats/Storage.ts"
import * as RecordStore from "./RecordStore.ts"
import * as TaskRecord from "./TaskRecord.ts"

/** How long a record and its objects are stored after the last change, in milliseconds: 24 hours. */
export const keptForMs = buckets.videoTasks.ttlMs

/** Results are stored in parts of this many bytes, so that no process holds more than one part. */
const partBytes = 1024 * 1024

/** How long one operation on the object store may take, in milliseconds. */
const storeWithinMs = 10_000

export class TaskStore extends Context.Service<TaskStore, {
  /**
   * Stores a new task; returns the existing task if the id is taken. With the first record of a request, also stores the body,
   * which all its records share.
   */
  readonly create: (
    task: TaskRecord.TaskRecord,
    body: Uint8Array
  ) => Effect.Effect<TaskRecord.TaskRecord, JetStreamFailed>
  /** Deletes the body that the task's request has stored. */
  readonly deleteBody: (task: TaskRecord.TaskRecord) => Effect.Effect<void, JetStreamFailed>
  readonly find: RecordStore.RecordStore["find"]
  /** Cancels a task. Returns it: cancelled now, or already ended. */
  readonly cancel: RecordStore.RecordStore["cancel"]
  /** Claims the task for a worker. */
  readonly claim: RecordStore.RecordStore["claim"]
  /** The request's body as the client sent it. */
  readonly readBody: (task: TaskRecord.TaskRecord) => Effect.Effect<Uint8Array, JetStreamFailed>
  /** Stores a large result. May be repeated, because clients cannot read it before the task is completed. */
  readonly writeContent: (id: string, bytes: Uint8Array) => Effect.Effect<void, JetStreamFailed>
  /** The bytes from `from` up to but not including `until`. */
  readonly readContent: (id: string, from: number, until: number) => Stream.Stream<Uint8Array, JetStreamFailed>
}>()("shared/tasks/TaskStore") {
  /** Retries everything that fails with `JetStreamFailed` for this long, in milliseconds. */
  static readonly layer = ({ patienceMs }: { readonly patienceMs: number }) => Layer.effect(TaskStore, open(patienceMs))
}

const open = Effect.fn("TaskStore.open")(function*(patienceMs: number) {
  const bucket = yield* openBucket(buckets.videoTasks).pipe(Effect.retry(whileJetStreamFails))
  const store = yield* openStore(stores.videoContent).pipe(Effect.retry(whileJetStreamFails))
  const patience = backOff.pipe(Schedule.upTo({ duration: patienceMs }))
  const again = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> => Effect.retry(effect, patience)

  const records = RecordStore.make(bucket, patience)

  const inStore = <A>(effect: Effect.Effect<A, JetStreamFailed>): Effect.Effect<A, JetStreamFailed> =>
    again(effect.pipe(
      Effect.timeoutOrElse({
        duration: storeWithinMs,
        orElse: () => Effect.fail(new JetStreamFailed({ detail: "the object store did not answer in time" }))
      })
    ))

  const read = (name: string): Effect.Effect<Uint8Array, JetStreamFailed> =>
    Effect.flatMap(
      inStore(store.get(name)),
      Effect.fromOption(() => new JetStreamFailed({ detail: "an object of the task is missing" }))
    )

  return TaskStore.of({
    create: Effect.fn("TaskStore.create")(function*(task, body) {
      if (task.index === 0) yield* inStore(store.put(bodyName(task), Stream.make(body)))
      return yield* records.create(task.id, task)
    }),
    deleteBody: (task) => inStore(store.delete(bodyName(task))),
    find: records.find,
    cancel: records.cancel,
    claim: records.claim,
    readBody: (task) => read(bodyName(task)),
    writeContent: Effect.fn("TaskStore.writeContent")(function*(id, bytes) {
      for (let at = 0; at < bytes.length; at += partBytes) {
        yield* inStore(store.put(partName(id, at / partBytes), Stream.make(bytes.subarray(at, at + partBytes))))
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

/** The name contains the hash, so that two requests with the same id never overwrite each other's body. */
const bodyName = ({ bodyHash, id }: TaskRecord.TaskRecord): string => `${TaskRecord.firstIdOf(id)}/${bodyHash}`
const partName = (id: string, part: number): string => `${id}/${part}`
