/** A task is stored and submitted once, even if several requests create it or an answer of the store is lost. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Schedule } from "effect"
import { TestClock } from "effect/testing"
import { QueueFull } from "../../../shared/contract/JobError.ts"
import { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import type { Revisions } from "../../../shared/nats/Modify.ts"
import * as RecordStore from "../../../shared/tasks/RecordStore.ts"
import * as Submission from "../../../shared/tasks/Submission.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"

const taskOf = (traceparent: string, changes: Partial<TaskRecord.TaskRecord> = {}): TaskRecord.TaskRecord => ({
  ...TaskRecord.make(
    { id: "task", tenant: "key", operation: "o", model: "m", pool: "default", bodyHash: "body", traceparent },
    0
  ),
  ...changes
})

const full = new QueueFull({ retryAfterMs: 1 })

/** A store of records that loses the answers to this many writes. */
const make = (lost = 0) => {
  const values = new Map<string, string>()
  let left = lost
  const bucket: Revisions = {
    getRevision: (key) =>
      Effect.sync(() => Option.map(Option.fromUndefinedOr(values.get(key)), (value) => ({ value, revision: 1 }))),
    create: (key, value) =>
      Effect.suspend(() => {
        if (values.has(key)) return Effect.succeed(false)
        values.set(key, value)
        return left-- > 0 ? Effect.fail(new JetStreamFailed({ detail: "no answer" })) : Effect.succeed(true)
      }),
    update: () => Effect.die("not expected")
  }
  const records = RecordStore.make(bucket, Schedule.recurs(1))
  let submitted = 0
  const place = (submits: boolean): Submission.Place => ({
    records,
    submit: () => Effect.suspend(() => (submitted++, submits ? Effect.void : Effect.fail(full))),
    remove: () => Effect.sync(() => values.delete("key"))
  })
  return {
    create: (task: TaskRecord.TaskRecord, submits = true) => Submission.create(place(submits), "key", task),
    again: (task: TaskRecord.TaskRecord) => Submission.again(place(true).submit, task),
    polled: (task: TaskRecord.TaskRecord) => Submission.againWhenPolled(place(true).submit, task),
    exists: () => values.has("key"),
    submitted: () => submitted
  }
}

describe("a task that two requests create", () => {
  it.effect("is that of the first, and stays if the second cannot submit it", () =>
    Effect.gen(function*() {
      const { create, exists, submitted } = make()
      assert.isTrue((yield* create(taskOf("first"))).isNew)
      const { isNew, task } = yield* create(taskOf("second"), false)
      assert.deepStrictEqual([isNew, task.traceparent], [false, "first"])
      assert.deepStrictEqual([exists(), submitted()], [true, 2])
    }))
})

describe("a task that cannot be submitted", () => {
  it.effect("is removed", () =>
    Effect.gen(function*() {
      for (const lost of [0, 1]) {
        const { create, exists } = make(lost)
        assert.strictEqual(yield* Effect.flip(create(taskOf("first"), false)), full)
        assert.isFalse(exists())
      }
    }))
})

it.effect("a task whose store did not answer is the request's own", () =>
  Effect.gen(function*() {
    assert.isTrue((yield* make(1).create(taskOf("first"))).isNew)
  }))

it.effect("a task is submitted again by repeated requests until a worker has it, and by polls while the queue drops copies", () =>
  Effect.gen(function*() {
    const { again, polled, submitted } = make()
    const [waiting, claimed, ended] = [taskOf("a"), taskOf("a", { claims: 1 }), taskOf("a", { status: "cancelled" })]
    for (const [ageMs, polls] of [[5_000, 0], [15_000, 1], [150_000, 0]] as const) {
      yield* TestClock.setTime(ageMs)
      const before = submitted()
      for (const task of [waiting, claimed, ended]) yield* polled(task)
      yield* Effect.yieldNow
      assert.strictEqual(submitted() - before, polls, `polls after ${ageMs} ms`)
      for (const task of [waiting, claimed, ended]) yield* again(task)
      assert.strictEqual(submitted() - before, polls + 1, `requests after ${ageMs} ms`)
    }
  }))
