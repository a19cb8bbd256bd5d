/**
 * The store of batches on a real server: what is refused or deleted leaves no key behind, and each batch has a job, even if its ingress
 * is lost while it creates the batch.
 */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { Clock, ConfigProvider, Context, Effect, Fiber, Layer, Schedule } from "effect"
import { Batches, type NewBatch } from "../../../shared/batches/Batches.ts"
import { batchPool, batchQueue, newestOf } from "../../../shared/bus/protocol/Subjects.ts"
import { streamConfig } from "../../../shared/bus/provision/JobStreams.ts"
import { type Bucket, openBucket } from "../../../shared/nats/KeyValue.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import * as TaskKeys from "../../../shared/tasks/answers/TaskKeys.ts"
import { recordKey, recordKeys } from "../../../shared/tasks/answers/TaskPages.ts"
import * as RecordStore from "../../../shared/tasks/RecordStore.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"
import { bindingOf } from "../../../shared/records/KeyBindings.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

/** A store, and its queue, which does not exist before `addQueue`. `room`: for how many batches of an owner. */
const start = Effect.gen(function*() {
  const { url } = yield* NatsServer.make()
  const environment = ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: url }))
  const context = yield* Layer.build(Layer.provideMerge(Batches.layer, Nats.layer)).pipe(Effect.provide(environment))
  const { connection } = Context.get(context, Nats)
  const config = streamConfig(batchQueue, newestOf(batchQueue), 1)
  const manager = yield* Effect.promise(() => jetstreamManager(connection))
  const bucket = yield* openBucket(buckets.batches).pipe(Effect.provideContext(context))
  return {
    batches: Context.get(context, Batches),
    bucket,
    keys: bucket.keys(recordKeys(owner)),
    addQueue: (room: number, roomForAll = 100) =>
      Effect.promise(() => manager.streams.add({ ...config, max_msgs_per_subject: room, max_msgs: roomForAll })),
    jobs: Effect.promise(async () => (await manager.streams.info(config.name)).state.messages)
  }
})

const owner = { id: "key_1", salt: "salt" }

const batch: NewBatch = {
  owner,
  tenant: "key_1",
  operation: "chat.completions",
  request: {
    endpoint: "/v1/chat/completions",
    input: "file-1",
    total: 1,
    atOnce: 1,
    window: "24h",
    expires: Number.MAX_SAFE_INTEGER,
    headers: {},
    metadata: null
  },
  traceparent: undefined
}

describe("the keys of an owner's batches", () => {
  it.live("are those of the batches that exist", () =>
    Effect.gen(function*() {
      const { addQueue, batches, keys } = yield* start
      yield* addQueue(2)
      const kept = yield* batches.create(batch)
      const deleted = yield* batches.create(batch)
      for (const keyed of [undefined, { operation: batch.operation, key: "once", bodyHash: "body" }]) {
        const refused = yield* Effect.flip(batches.create(batch, keyed))
        assert.deepInclude(refused, { _tag: "QueueFull", retryAfterMs: 30_000 })
        assert.include(refused.message, "owner has 100 unfinished batches")
      }
      yield* batches.delete(owner, deleted.batch.task.id)
      const { id } = kept.batch.task
      assert.deepStrictEqual(yield* keys, [recordKey(owner, id)])
      const { batches: listed } = yield* batches.list(owner, { limit: 10 })
      assert.deepStrictEqual(listed.map(({ task }) => task.id), [id])
    }))
})

it.live("a queue that is full for everyone does not blame the owner", () =>
  Effect.gen(function*() {
    const { addQueue, batches } = yield* start
    yield* addQueue(2, 1)
    yield* batches.create(batch)
    const refused = yield* Effect.flip(batches.create(batch))
    assert.strictEqual(refused._tag, "QueueFull")
    assert.notInclude(refused.message, "owner")
  }))

const keyed = { operation: batch.operation, key: "once", bodyHash: "body" }
const id = `batch_${"0".repeat(32)}`

/** What an ingress leaves behind that dies while it creates a batch: the key, and perhaps the record. */
const leave = Effect.fnUntraced(function*(bucket: Bucket, createdMsAgo?: number) {
  const records = RecordStore.make(bucket, Schedule.recurs(3))
  yield* TaskKeys.make(bucket, records, Schedule.recurs(3)).bind(owner, keyed, id)
  if (createdMsAgo === undefined) return
  const task = {
    ...{ id, tenant: batch.tenant, operation: batch.operation, model: "", pool: batchPool, bodyHash: "file-1" },
    binding: bindingOf(owner, keyed),
    details: batch.request
  }
  yield* records.create(recordKey(owner, id), TaskRecord.make(task, (yield* Clock.currentTimeMillis) - createdMsAgo))
})

describe("a batch gets its job", () => {
  it.live("if the client disconnects before the batch is in the queue", () =>
    Effect.gen(function*() {
      const { addQueue, batches, jobs, keys } = yield* start
      const creation = yield* Effect.forkChild(batches.create(batch))
      yield* Effect.promise(() => eventually(() => Effect.runPromise(keys), ({ length }) => length === 1))
      creation.interruptUnsafe()
      yield* addQueue(1)
      yield* Fiber.await(creation)
      assert.deepStrictEqual([(yield* keys).length, yield* jobs], [1, 1])
    }))

  for (const [how, ask] of [["joins", "join"], ["repeats", "create"]] as const) {
    it.live(`from a request that ${how} that of an ingress that has died long ago`, () =>
      Effect.gen(function*() {
        const { addQueue, batches, bucket, jobs } = yield* start
        yield* addQueue(1)
        yield* leave(bucket, 200_000)
        yield* ask === "join" ? batches.join(owner, keyed) : batches.create(batch, keyed)
        assert.strictEqual(yield* jobs, 1)
      }))
  }

  it.live("from the first of two requests that continue for an ingress that has died", () =>
    Effect.gen(function*() {
      const { addQueue, batches, bucket, jobs, keys } = yield* start
      yield* addQueue(1)
      yield* leave(bucket)
      const made = yield* Effect.forEach(
        ["a", "b"],
        (traceparent) => batches.create({ ...batch, traceparent }, keyed),
        { concurrency: 2 }
      )
      assert.deepStrictEqual(made.map(({ isRepeated }) => isRepeated).toSorted(), [false, true])
      assert.deepStrictEqual(made[0]?.batch, made[1]?.batch)
      assert.deepStrictEqual([yield* keys, yield* jobs], [[recordKey(owner, id)], 1])
    }))
})
