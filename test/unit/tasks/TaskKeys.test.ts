/** Idempotency keys and the tasks that they stand for. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schedule } from "effect"
import * as TestClock from "effect/testing/TestClock"
import { type JobError, ProviderRateLimited, WorkerLost } from "../../../shared/contract/JobError.ts"
import type { Bucket } from "../../../shared/nats/KeyValue.ts"
import { bindingOf, type KeyedRequest } from "../../../shared/records/KeyBindings.ts"
import * as TaskKeys from "../../../shared/tasks/answers/TaskKeys.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"

const owner = { id: "owner", salt: "salt" }
const request = { operation: "embeddings", key: "order-1", bodyHash: "body" }

const taskOf = (id: string, changes: Partial<TaskRecord.TaskRecord> = {}): TaskRecord.TaskRecord => ({
  ...TaskRecord.make({ id, tenant: "key", operation: "embeddings", model: "m", pool: "default", bodyHash: "body" }, 0),
  ...changes
})

const make = () => {
  const values = new Map<string, { readonly value: string; readonly revision: number }>()
  const tasks = new Map<string, TaskRecord.TaskRecord>()
  let last = 0
  const write = (key: string, value: string) => {
    values.set(key, { value, revision: ++last })
    return last
  }
  const bucket: Pick<Bucket, "create" | "getRevision" | "update"> = {
    getRevision: (key) => Effect.sync(() => Option.fromUndefinedOr(values.get(key))),
    create: (key, value) => Effect.sync(() => !values.has(key) && write(key, value) > 0),
    update: (key, value, revision) =>
      Effect.sync(() => values.get(key)?.revision === revision ? Option.some(write(key, value)) : Option.none())
  }
  const find = (key: string) => Effect.sync(() => Option.fromUndefinedOr(tasks.get(key.slice(key.indexOf(".") + 1))))
  const keys = TaskKeys.make(bucket, { find }, Schedule.recurs(0))
  return {
    bind: (id: string, changes: Partial<KeyedRequest> = {}) => keys.bind(owner, { ...request, ...changes }, id),
    find: Effect.map(keys.find(owner, request), Option.map(({ id }) => id)),
    free: (id: string) => keys.free(bindingOf(owner, request), id),
    keep: (task: TaskRecord.TaskRecord) => void tasks.set(task.id, task)
  }
}

describe("an idempotency key", () => {
  it.effect("stands for the first task for a day", () =>
    Effect.gen(function*() {
      const { bind, find, keep } = make()
      assert.deepStrictEqual(yield* find, Option.none())
      assert.strictEqual(yield* bind("task_1"), "task_1")
      keep(taskOf("task_1"))
      assert.strictEqual(yield* bind("task_2"), "task_1")
      assert.deepStrictEqual(yield* find, Option.some("task_1"))
      yield* TestClock.adjust("1 day")
      assert.deepStrictEqual(yield* find, Option.none())
      assert.strictEqual(yield* bind("task_3"), "task_3")
    }))

  it.effect("stands for a task that its ingress did not create", () =>
    Effect.gen(function*() {
      const { bind, find } = make()
      yield* bind("task_1")
      assert.deepStrictEqual(yield* find, Option.none())
      assert.strictEqual(yield* bind("task_2"), "task_1")
    }))

  it.effect("is refused for another body, and is another one for another operation", () =>
    Effect.gen(function*() {
      const { bind } = make()
      yield* bind("task_1")
      assert.strictEqual((yield* Effect.flip(bind("task_2", { bodyHash: "other" })))._tag, "OtherBody")
      assert.strictEqual(yield* bind("task_2", { operation: "rerank", bodyHash: "other" }), "task_2")
    }))

  it.effect("is freed only by the deletion of the task that it stands for", () =>
    Effect.gen(function*() {
      const { bind, find, free, keep } = make()
      yield* free("task_0")
      yield* bind("task_1")
      keep(taskOf("task_1", { status: "cancelled", ended: 0 }))
      assert.strictEqual(yield* bind("task_2"), "task_2")
      keep(taskOf("task_2"))
      yield* free("task_1")
      assert.deepStrictEqual(yield* find, Option.some("task_2"))
      yield* free("task_2")
      assert.deepStrictEqual(yield* find, Option.none())
      assert.strictEqual(yield* bind("task_3", { bodyHash: "other" }), "task_3")
    }))

  const called = { providerTask: { provider: "p", model: "m", task: null } } as const
  const failed = (error: JobError, call: Partial<TaskRecord.TaskRecord> = {}) =>
    ({ status: "failed", ended: 0, error, ...call }) as const
  const limited = new ProviderRateLimited({ provider: "p", retryAfterMs: null })

  const ends: Readonly<Record<string, readonly [Partial<TaskRecord.TaskRecord>, isFree: boolean]>> = {
    "is free after a failure before the call": [failed(new WorkerLost()), true],
    "is free after a provider's refusal": [failed(limited, called), true],
    "is free after a cancellation before the call": [{ status: "cancelled", ended: 0 }, true],
    "is taken after a failure that may have been paid": [failed(new WorkerLost(), called), false],
    "is taken after a cancellation in the call": [{ status: "cancelled", ended: 0, ...called }, false],
    "is taken after an answer": [{ status: "completed", ended: 0 }, false]
  }
  for (const [name, [changes, isFree]] of Object.entries(ends)) {
    it.effect(name, () =>
      Effect.gen(function*() {
        const { bind, keep } = make()
        yield* bind("task_1")
        keep(taskOf("task_1", changes))
        assert.strictEqual(yield* bind("task_2", { bodyHash: isFree ? "other" : "body" }), isFree ? "task_2" : "task_1")
      }))
  }
})
