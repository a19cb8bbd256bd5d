/** The store of batches on a real server: what is refused or deleted leaves no key behind. */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { ConfigProvider, Context, Effect, Layer } from "effect"
import { Batches, type NewBatch } from "../../../shared/batches/Batches.ts"
import { batchQueue, newestOf } from "../../../shared/bus/protocol/Subjects.ts"
import { streamConfig } from "../../../shared/bus/provision/JobStreams.ts"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import { recordKey, recordKeys } from "../../../shared/tasks/answers/TaskPages.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

/** A store whose queue has room for this many batches of an owner. */
const start = Effect.fnUntraced(function*(room: number) {
  const { url } = yield* NatsServer.make()
  const environment = ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: url }))
  const context = yield* Layer.build(Layer.provideMerge(Batches.layer, Nats.layer)).pipe(Effect.provide(environment))
  const { connection } = Context.get(context, Nats)
  yield* Effect.promise(async () => {
    const { streams } = await jetstreamManager(connection)
    await streams.add({ ...streamConfig(batchQueue, newestOf(batchQueue), 1), max_msgs_per_subject: room })
  })
  const bucket = yield* openBucket(buckets.batches).pipe(Effect.provideContext(context))
  return { batches: Context.get(context, Batches), bucket }
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
      const { batches, bucket } = yield* start(2)
      const kept = yield* batches.create(batch)
      const deleted = yield* batches.create(batch)
      for (const keyed of [undefined, { operation: batch.operation, key: "once", bodyHash: "body" }]) {
        const refused = yield* Effect.flip(batches.create(batch, keyed))
        assert.strictEqual(refused._tag, "QueueFull")
      }
      yield* batches.delete(owner, deleted.batch.task.id)
      const { id } = kept.batch.task
      assert.deepStrictEqual(yield* bucket.keys(recordKeys(owner)), [recordKey(owner, id)])
      const { batches: listed } = yield* batches.list(owner, { limit: 10 })
      assert.deepStrictEqual(listed.map(({ task }) => task.id), [id])
    }))
})
