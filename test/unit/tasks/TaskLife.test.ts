/** How a worker settles the delivery of a task. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { TaskRefused } from "../../../shared/tasks/RecordStore.ts"
import * as TaskLife from "../../../shared/tasks/TaskLife.ts"
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
