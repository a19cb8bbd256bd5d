/** Stored tasks, and their exclusive changes by one worker at a time, over a real server. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Option, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Nats } from "../../../shared/nats/Nats.ts"
import { taskAgeMs } from "../../../shared/bus/protocol/Timings.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"
import * as TaskState from "../../../shared/tasks/TaskState.ts"
import { TaskRefused } from "../../../shared/tasks/RecordStore.ts"
import { TaskStore } from "../../../shared/tasks/TaskStore.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

const named = (id: string): TaskRecord.TaskRecord =>
  TaskRecord.make({
    id,
    tenant: "key_1",
    operation: "video.generations",
    model: "local-video",
    pool: "default",
    bodyHash: "hash"
  }, 0)

const result = { format: "mp4", size: 3 }

/** Runs a test with one process's store on its own server. The test controls the time. */
const withStore = <A, E>(
  test: (store: TaskStore["Service"], server: NatsServer) => Effect.Effect<A, E>
) =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const layer = TaskStore.layer({ patienceMs: 1_000 }).pipe(
      Layer.provide(Nats.layer),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: server.url })))
    )
    return yield* Effect.flatMap(TaskStore, (store) => test(store, server)).pipe(Effect.provide(layer))
  }).pipe(Effect.scoped)

describe("a stored task", () => {
  it.effect("ends as failed if it is read when its job has expired", () =>
    withStore((store) =>
      Effect.gen(function*() {
        yield* store.create(named("task_1"), new Uint8Array(1))
        yield* store.claim("task_1", "a")
        const read = Effect.map(store.find("task_1"), Option.map(({ status }) => status))
        assert.deepStrictEqual(yield* read, Option.some("in_progress"))
        yield* TestClock.adjust(taskAgeMs + 5 * 60_000)
        assert.deepStrictEqual(yield* read, Option.some("failed"))
        const refused = yield* Effect.flip(store.claim("task_1", "b"))
        assert.deepInclude(refused as object, { refusal: "ended" })
      })
    ))

  it.effect("is created once, whichever request comes first", () =>
    withStore((store) =>
      Effect.gen(function*() {
        const made = yield* Effect.forEach(
          Array.from({ length: 5 }, (_, index) => ({ ...named("task_1"), bodyHash: `hash ${index}` })),
          (task) => store.create(task, Buffer.from(task.bodyHash)),
          { concurrency: "unbounded" }
        )
        assert.lengthOf(new Set(made.map(({ bodyHash }) => bodyHash)), 1)
        // the bodies of the later ones have not replaced the first one's
        const body = yield* store.readBody(made[0]!)
        assert.strictEqual(Buffer.from(body).toString(), made[0]!.bodyHash)
        assert.isTrue(Option.isNone(yield* store.find("task_2")))
      })
    ))

  it.effect("is claimed by one of two workers", () =>
    withStore((store) =>
      Effect.gen(function*() {
        yield* store.create(named("task_1"), new Uint8Array(0))
        const claims = yield* Effect.forEach(["a", "b"], (worker) => Effect.result(store.claim("task_1", worker)), {
          concurrency: "unbounded"
        })
        assert.lengthOf(claims.filter(Result.isSuccess), 1)
        assert.deepStrictEqual(claims.flatMap((claim) => Result.isFailure(claim) ? [claim.failure] : []), [
          new TaskRefused({ refusal: "fenced" })
        ])
      })
    ))

  it.effect("is lost to a worker that slept, which then cannot write to it", () =>
    withStore((store) =>
      Effect.gen(function*() {
        yield* store.create(named("task_1"), new Uint8Array(0))
        const first = yield* store.claim("task_1", "a")
        yield* TestClock.adjust(TaskState.leaseMs)
        const second = yield* store.claim("task_1", "b")
        for (const event of [{ event: "renewed", progress: 1 }, { event: "completed", result }] as const) {
          const refused = yield* Effect.flip(first.record(event))
          assert.deepStrictEqual(refused, new TaskRefused({ refusal: "fenced" }))
        }
        yield* second.record({ event: "completed", result })
        const task = Option.getOrThrow(yield* store.find("task_1"))
        assert.deepInclude(task, { status: "completed", holder: null, claims: 2, progress: 100 })
      })
    ))

  it.effect("cannot be changed by its worker after a cancellation", () =>
    withStore((store) =>
      Effect.gen(function*() {
        yield* store.create(named("task_1"), new Uint8Array(0))
        const claimed = yield* store.claim("task_1", "a")
        yield* claimed.record({ event: "renewed", progress: 10 })
        assert.strictEqual((yield* store.cancel("task_1")).status, "cancelled")
        assert.deepStrictEqual(
          yield* Effect.flip(claimed.record({ event: "completed", result })),
          new TaskRefused({ refusal: "ended" })
        )
        assert.strictEqual((yield* store.cancel("task_1")).status, "cancelled")
        assert.deepStrictEqual(
          yield* Effect.flip(store.cancel("task_2")),
          new TaskRefused({ refusal: "unknown" })
        )
      })
    ))

  it.effect("applies concurrent changes one after the other", () =>
    withStore((store) =>
      Effect.gen(function*() {
        yield* store.create(named("task_1"), new Uint8Array(0))
        const claimed = yield* store.claim("task_1", "a")
        yield* Effect.forEach(
          Array.from({ length: 20 }, (_, index) => index),
          (progress) => claimed.record({ event: "renewed", progress }),
          { concurrency: "unbounded", discard: true }
        )
        assert.strictEqual(claimed.current().progress, 19)
        assert.deepStrictEqual(Option.getOrThrow(yield* store.find("task_1")), claimed.current())
      })
    ))

  it.effect("has its video in parts, from which any range can be read", () =>
    withStore((store) =>
      Effect.gen(function*() {
        const bytes = Buffer.alloc(2_500_000)
        for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE(at, at)
        yield* store.writeContent("task_1", bytes)
        for (
          const [from, until] of [[0, bytes.length], [0, 1], [1_048_575, 1_048_577], [2_499_999, 2_500_000]] as const
        ) {
          const read = yield* Stream.runCollect(store.readContent("task_1", from, until))
          assert.isTrue(Buffer.concat([...read]).equals(bytes.subarray(from, until)), `${from} to ${until}`)
        }
      })
    ))
})
