/** A worker's environment: a value that can never work ends it at start, with the variable's name. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { reserveOf } from "../../../shared/bus/fairness/FairShare.ts"
import { startupMessage } from "../../../shared/process/StartupMessage.ts"
import { defaultSlots, taskSlots, workerSettings } from "../../../shared/worker/WorkerSettings.ts"

const read = (environment: object) =>
  workerSettings({ slots: 4, graceMs: 1_000 }).parse(ConfigProvider.fromUnknown(environment))

describe("a worker", () => {
  it.effect("has defaults if no variable is set", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* read({}), { slots: 4, pool: "default", graceMs: 1_000 })
    }))

  it("has slots for a thousand streams of one key, beside those for newcomers", () => {
    assert.isAtLeast(defaultSlots.chat - reserveOf(defaultSlots.chat), 1_200)
  })

  // the rule: 16, however many jobs there are, but no more than jobs; a task needs the memory of a job
  const tasks = [
    [{}, 1_280, 16],
    [{}, 64, 16],
    [{}, 16, 16],
    [{}, 4, 4],
    [{}, 1, 1],
    [{ WORKER_TASK_SLOTS: "100" }, 4, 100],
    [{ WORKER_TASK_SLOTS: "1" }, 1_280, 1]
  ] as const
  it.effect.each(tasks)(
    "with %j and slots for %s jobs has slots for %s tasks",
    ([environment, slots, expected]) =>
      Effect.gen(function*() {
        assert.strictEqual(yield* taskSlots(slots).parse(ConfigProvider.fromUnknown(environment)), expected)
      })
  )

  const wrong = [
    ["WORKER_SLOTS", "0", "WORKER_SLOTS must be a whole number of at least 1"],
    ["WORKER_SLOTS", "many", "WORKER_SLOTS must be a whole number of at least 1"],
    ["WORKER_POOL", "Large.1", "WORKER_POOL must be lower case letters, digits and -, at most 32 of them"],
    ["WORKER_GRACE_MS", "-1", "WORKER_GRACE_MS must be a whole number of at least 0"]
  ] as const
  it.effect.each(wrong)("does not start with %s=%s", ([variable, value, says]) =>
    Effect.gen(function*() {
      assert.strictEqual(startupMessage(yield* Effect.flip(Effect.asVoid(read({ [variable]: value })))), says)
    }))
})
