/** The status of a batch, from the record of its task. */
import { assert, describe, it } from "@effect/vitest"
import { Option, Result } from "effect"
import { type BatchRequest, noProgress } from "../../../shared/batches/BatchRecord.ts"
import { batchOf } from "../../../shared/batches/BatchState.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"
import { isAbandoned, type TaskEvent, transition } from "../../../shared/tasks/TaskState.ts"

const request: BatchRequest = {
  endpoint: "/v1/chat/completions",
  input: "file",
  total: 3,
  atOnce: 32,
  window: "24h",
  expires: 1_000,
  headers: {},
  metadata: null
}

const day = 24 * 60 * 60_000
const fresh = TaskRecord.make({
  ...{ id: "batch_1", tenant: "key", operation: "chat.completions", model: "", pool: "default", bodyHash: "file" },
  details: request,
  expires: 2 * day
}, 0)

const holder = { worker: "w", claim: 1 }

const after = (events: ReadonlyArray<TaskEvent>, from = fresh) =>
  events.reduce((record, event) => Result.getOrThrow(transition(record, event, 100)), from)
const statusAfter = (...events: ReadonlyArray<TaskEvent>) => Option.getOrThrow(batchOf(after(events))).status

const claimed: TaskEvent = { event: "claimed", worker: "w" }
const inPhase = (phase: "in_progress" | "finalizing"): TaskEvent => ({
  event: "renewed",
  holder,
  progress: 0,
  state: { ...noProgress, phase }
})
const ended = (end: string): TaskEvent => ({
  event: "completed",
  holder,
  result: { end, progress: { ...noProgress, completed: 3 }, mistakes: [] }
})

describe("a batch", () => {
  it("has the status of its work", () => {
    assert.strictEqual(statusAfter(), "validating")
    assert.strictEqual(statusAfter(claimed), "validating")
    assert.strictEqual(statusAfter(claimed, inPhase("in_progress")), "in_progress")
    assert.strictEqual(statusAfter(claimed, inPhase("finalizing")), "finalizing")
    for (const end of ["completed", "failed", "expired", "cancelled"]) {
      assert.strictEqual(statusAfter(claimed, ended(end)), end)
    }
  })

  it("is being cancelled until its results are there", () => {
    const stopping: TaskEvent = { event: "stopping" }
    assert.strictEqual(statusAfter(stopping), "cancelling")
    assert.strictEqual(statusAfter(claimed, inPhase("in_progress"), stopping), "cancelling")
    assert.strictEqual(statusAfter(claimed, stopping, inPhase("finalizing")), "cancelling")
    assert.strictEqual(statusAfter(claimed, stopping, ended("cancelled")), "cancelled")
  })

  it("keeps its holder while it is cancelled, and another holder can take it", () => {
    const record = after([claimed, { event: "stopping" }])
    assert.deepStrictEqual(record.holder, holder)
    assert.strictEqual(record.leaseUntil, after([claimed]).leaseUntil)
    assert.isTrue(Result.isSuccess(transition(after([{ event: "stopping" }]), claimed, 100)))
  })

  it("forgets lost holders when it has got on", () => {
    const lost = { ...after([claimed]), losses: 1 }
    assert.strictEqual(after([inPhase("in_progress")], lost).losses, 0)
    assert.strictEqual(after([{ event: "renewed", holder, progress: 1 }], lost).losses, 1)
  })

  it("fails with the mistakes, or with the error of its task", () => {
    const failed = Option.getOrThrow(batchOf(after([
      claimed,
      { event: "failed", holder, error: { _tag: "InternalError", message: "a" } as never }
    ])))
    assert.deepInclude(failed, { status: "failed" })
    assert.strictEqual(failed.mistakes[0]?.code, "InternalError")
  })

  it("may wait for longer than other tasks", () => {
    const { expires: _, ...other } = fresh
    assert.isTrue(isAbandoned(other, day + 200_000))
    assert.isFalse(isAbandoned(fresh, day + 200_000))
    assert.isTrue(isAbandoned(fresh, 2 * day + 200_000))
  })
})
