/** How a worker settles the delivery of a task. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import { type ClaimedTask, TaskRefused } from "../../../shared/tasks/RecordStore.ts"
import * as TaskLife from "../../../shared/tasks/TaskLife.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"
import { pulled, served } from "../worker/Served.ts"

const unexpected = () => Effect.die("not expected")

/** Settles the delivery of a task without a record, at this age in milliseconds. */
const settle = Effect.fnUntraced(function*(ageMs: number) {
  yield* TestClock.setTime(pulled.publishedAt + ageMs)
  const { events, metering: { cost, log } } = served()
  const settlement = yield* TaskLife.runTask({
    worker: "worker",
    workload: "chat",
    metering: { cost, log },
    store: {
      find: () => Effect.succeedNone,
      claim: () => Effect.fail(new TaskRefused({ refusal: "unknown" }))
    },
    work: {
      perform: unexpected,
      stop: unexpected,
      keyOf: ({ id }) => id,
      usageOf: () => undefined,
      announce: unexpected
    }
  }, pulled)
  return { settlement, events }
})

describe("a task that was deleted while it waited", () => {
  it.effect("is tried again at first: a server may not know its record yet", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* settle(59_999), { settlement: "later", events: [] })
    }))

  it.effect("is done after a minute, without waiting for its record", () =>
    Effect.gen(function*() {
      // a wait would not end: nothing advances the clock
      assert.deepStrictEqual(yield* settle(60_000), { settlement: "done", events: [] })
    }))
})

it.effect("a task whose record cannot be written is released, so that it does not count as lost", () =>
  Effect.gen(function*() {
    const recorded: Array<string> = []
    const record = TaskRecord.make(
      { id: "task", tenant: "key", operation: "chat.completions", model: "model", pool: "default", bodyHash: "" },
      0
    )
    const task: ClaimedTask = {
      current: () => record,
      record: ({ event }) => Effect.sync(() => (recorded.push(event), record)),
      refusal: () => undefined
    }
    const settlement = yield* TaskLife.runTask({
      worker: "worker",
      workload: "chat",
      store: { find: unexpected, claim: () => Effect.succeed(task) },
      work: {
        perform: () => Effect.fail(new JetStreamFailed({ detail: "no leader" })),
        stop: unexpected,
        keyOf: ({ id }) => id,
        usageOf: () => undefined
      }
    }, pulled)
    assert.strictEqual(settlement, "later")
    assert.deepStrictEqual(recorded, ["released"])
  }))

it.effect("a task that has ended is metered by the deliveries of its job, and not by a later copy of the job", () =>
  Effect.gen(function*() {
    const record: TaskRecord.TaskRecord = {
      ...TaskRecord.make(
        { id: "task", tenant: "key", operation: "chat.completions", model: "model", pool: "default", bodyHash: "" },
        0
      ),
      status: "completed",
      ended: 1,
      providerTask: { provider: "provider", model: "model", task: null }
    }
    const settle = Effect.fnUntraced(function*(delivery: number) {
      const events: Array<string> = []
      const { metering: { cost, log } } = served()
      let announced = 0
      const settlement = yield* TaskLife.runTask({
        worker: "worker",
        workload: "chat",
        metering: {
          cost,
          log: {
            ...log,
            write: (_, { id }, onStored) => {
              events.push(id)
              onStored?.()
            }
          }
        },
        store: {
          find: () => Effect.succeedSome(record),
          claim: () => Effect.fail(new TaskRefused({ refusal: "ended" }))
        },
        work: {
          perform: unexpected,
          stop: unexpected,
          keyOf: ({ id }) => id,
          usageOf: () => undefined,
          announce: () => Effect.sync(() => void announced++)
        }
      }, { ...pulled, delivery })
      assert.deepStrictEqual({ settlement, announced }, { settlement: "done", announced: 1 })
      return events
    })
    assert.deepStrictEqual(yield* settle(1), [])
    assert.deepStrictEqual(yield* settle(2), ["task"])
  }))
