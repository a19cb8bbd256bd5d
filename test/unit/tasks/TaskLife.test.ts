/** How a worker settles the delivery of a task. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { TestClock } from "effect/testing"
import { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import { type ClaimedTask, TaskRefused } from "../../../shared/tasks/RecordStore.ts"
import * as TaskLife from "../../../shared/tasks/TaskLife.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"
import { pulled, served } from "../worker/Served.ts"

const unexpected = () => Effect.die("not expected")

interface Refused {
  readonly refusal: TaskRefused["refusal"]
  readonly record?: TaskRecord.TaskRecord
  readonly delivery?: number
  readonly announce?: () => Effect.Effect<void>
}

/** Settles a delivery whose claim is refused, and returns the ids of the usage events. */
const settleRefused = Effect.fnUntraced(function*({ announce = unexpected, delivery = 1, record, refusal }: Refused) {
  const events: Array<string> = []
  const { metering: { cost, log } } = served()
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
      find: () => Effect.succeed(Option.fromUndefinedOr(record)),
      claim: () => Effect.fail(new TaskRefused({ refusal }))
    },
    work: {
      perform: unexpected,
      stop: unexpected,
      keyOf: ({ id }) => id,
      usageOf: () => undefined,
      announce
    }
  }, { ...pulled, delivery })
  return { settlement, events }
})

/** Settles the delivery of a task without a record, at this age in milliseconds. */
const settle = (ageMs: number) =>
  Effect.andThen(TestClock.setTime(pulled.publishedAt + ageMs), settleRefused({ refusal: "unknown" }))

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
    for (const [delivery, events] of [[1, []], [2, ["task"]]] as const) {
      let announced = 0
      const announce = () => Effect.sync(() => void announced++)
      const settled = yield* settleRefused({ refusal: "ended", record, delivery, announce })
      assert.deepStrictEqual({ ...settled, announced }, { settlement: "done", events: [...events], announced: 1 })
    }
  }))
