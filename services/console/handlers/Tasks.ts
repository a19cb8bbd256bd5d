/** The tasks and batches of all owners, as one store for the console. */
import { Clock, Context, Duration, Effect, Layer, Schedule, Semaphore } from "effect"
import { isBatchId } from "../../../shared/batches/BatchRecord.ts"
import { backOff, whileJetStreamFails } from "../../../shared/nats/JetStream.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { buckets, type BucketSpec } from "../../../shared/nats/Storage.ts"
import * as StoredTasks from "../../../shared/tasks/answers/StoredTasks.ts"
import * as TaskKeys from "../../../shared/tasks/answers/TaskKeys.ts"
import * as TaskHints from "../../../shared/tasks/answers/TaskHints.ts"
import * as RecordStore from "../../../shared/tasks/RecordStore.ts"

/** How long to retry a request to JetStream, in milliseconds. */
const patienceMs = 2_000

/** The pause after a listing of all keys, as a multiple of the listing's duration: about a second per 100,000 keys. */
const pauseFactor = 10

/** Lists all keys again only after a pause, because open pages ask for them every few seconds. */
const restrained = Effect.fnUntraced(function*<E>(list: Effect.Effect<ReadonlyArray<string>, E>) {
  const turn = yield* Semaphore.make(1)
  let known: ReadonlyArray<string> = []
  let knownUntil = 0
  return turn.withPermit(Effect.gen(function*() {
    if ((yield* Clock.currentTimeMillis) < knownUntil) return known
    const [took, keys] = yield* Effect.timed(list)
    known = keys
    knownUntil = (yield* Clock.currentTimeMillis) + pauseFactor * Duration.toMillis(took)
    return keys
  }))
})

export class Tasks extends Context.Service<Tasks, {
  readonly stored: StoredTasks.StoredTasks
  readonly allKeys: ReturnType<StoredTasks.StoredTasks["keys"]>
  readonly find: RecordStore.RecordStore["find"]
}>()("services/console/handlers/Tasks") {
  static readonly layer = Layer.effect(
    Tasks,
    Effect.gen(function*() {
      const patience = backOff.pipe(Schedule.upTo({ duration: patienceMs }))
      const hints = TaskHints.make(yield* Nats)
      /** `end` is how a client ends the work. A batch keeps its results so far, so its holder must stop it. */
      const open = Effect.fnUntraced(function*(spec: BucketSpec, end: "cancel" | "stop") {
        const bucket = yield* openBucket(spec).pipe(Effect.retry(whileJetStreamFails))
        const records = RecordStore.make(bucket, patience, hints.give)
        const { free } = TaskKeys.make(bucket, records, patience)
        return {
          keys: bucket.keys,
          find: records.find,
          cancel: records[end],
          free,
          remove: StoredTasks.removeFrom(bucket, patience)
        } satisfies StoredTasks.Place
      })
      const tasks = yield* open(buckets.tasks, "cancel")
      const batches = yield* open(buckets.batches, "stop")
      const placeOf = (key: string) => isBatchId(StoredTasks.idOf(key)) ? batches : tasks
      const find = (key: string) => placeOf(key).find(key)
      const stored = StoredTasks.make({
        keys: (filter) =>
          Effect.map(
            Effect.forEach([tasks, batches], ({ keys }) => keys(filter), { concurrency: 2 }),
            (keys) => keys.flat()
          ),
        find,
        cancel: (key) => placeOf(key).cancel(key),
        free: (binding, id) => (isBatchId(id) ? batches : tasks).free(binding, id),
        remove: (key, task) => placeOf(key).remove(key, task)
      }, patience)
      return { stored, allKeys: yield* restrained(stored.keys(StoredTasks.allRecords)), find }
    })
  )
}
