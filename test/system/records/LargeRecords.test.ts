/** Records that are larger than a message to the NATS server may be. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, ConfigProvider, Effect, Exit, Layer, Option, Schedule } from "effect"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { buckets } from "../../../shared/nats/Storage.ts"
import * as RecordStore from "../../../shared/tasks/RecordStore.ts"
import * as TaskLife from "../../../shared/tasks/TaskLife.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { pulled } from "../../unit/worker/Served.ts"

const tooLarge = "x".repeat(2 * 1024 * 1024)

const openBatches = Effect.gen(function*() {
  const { url } = yield* NatsServer.make()
  const settings = ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: url }))
  const context = yield* Layer.build(Nats.layer).pipe(Effect.provide(settings))
  return yield* openBucket(buckets.batches).pipe(Effect.provideContext(context))
})

describe("a record that is too large", () => {
  it.live("is not written again and again", () =>
    Effect.gen(function*() {
      const bucket = yield* openBatches
      assert.isTrue(yield* bucket.create("a", "small"))
      const { revision } = Option.getOrThrow(yield* bucket.getRevision("a"))
      const writes = [
        bucket.create("b", tooLarge),
        bucket.put("a", tooLarge),
        bucket.update("a", tooLarge, revision),
        bucket.updateBytes("a", Buffer.from(tooLarge), revision)
      ].map((write) => Effect.asVoid(write))
      for (const write of writes) {
        let tries = 0
        const counted = Effect.suspend(() => (tries++, write))
        const exit = yield* Effect.exit(Effect.retry(counted, Schedule.recurs(2)))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
        assert.strictEqual(tries, 1)
      }
    }))

  for (const [what, work] of [["result", "completed"], ["state", "renewed"]] as const) {
    it.live(`ends its task as failed if it is too large because of its ${what}`, () =>
      Effect.gen(function*() {
        const store = RecordStore.make(yield* openBatches, Schedule.recurs(2))
        const task = { id: "task", tenant: "key", operation: "o", model: "m", pool: "default", bodyHash: "" }
        yield* store.create("task", TaskRecord.make(task, pulled.publishedAt))
        const settlement = yield* TaskLife.runTask({
          worker: "worker",
          workload: "batches",
          store,
          work: {
            perform: (_, report) =>
              work === "completed"
                ? Effect.succeed(tooLarge)
                : Effect.andThen(Effect.sync(() => report(1, tooLarge)), Effect.never),
            stop: () => Effect.die("not expected"),
            keyOf: ({ id }) => id,
            usageOf: () => undefined
          }
        }, { ...pulled, id: "task" })
        assert.strictEqual(settlement, "done")
        const { error, status } = Option.getOrThrow(yield* store.find("task"))
        assert.deepStrictEqual([status, error?._tag], ["failed", "InternalError"])
      }))
  }
})
