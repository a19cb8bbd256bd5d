/** The states of a task, how a worker continues one, and the format of its record. */
import { assert, describe, it } from "@effect/vitest"
import { Option, Result } from "effect"
import { taskAgeMs } from "../../../shared/bus/protocol/Timings.ts"
import { InternalError } from "../../../shared/contract/JobError.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"
import * as TaskState from "../../../shared/tasks/TaskState.ts"

const named = (id: string): TaskRecord.TaskRecord =>
  TaskRecord.make({
    id,
    tenant: "key_1",
    operation: "video.generations",
    model: "local-video",
    pool: "default",
    bodyHash: "hash"
  }, 0)

const holder = { worker: "a", claim: 1 }
const result = { format: "mp4", size: 3 }

const events = {
  claimed: { event: "claimed", worker: "b" },
  starting: { event: "starting", holder, provider: "local", model: "local-video" },
  declined: { event: "declined", holder },
  started: { event: "started", holder, task: { seed: 7 } },
  renewed: { event: "renewed", holder, progress: 50 },
  released: { event: "released", holder },
  deferred: { event: "deferred", holder },
  completed: { event: "completed", holder, result },
  failed: { event: "failed", holder, error: new InternalError() },
  cancelled: { event: "cancelled" },
  expired: { event: "expired" }
} as const satisfies Record<string, TaskState.TaskEvent>

/** The outcome of an event at a moment: the new status, or the reason for a rejection. */
const outcome = (task: TaskRecord.TaskRecord, event: TaskState.TaskEvent, now: number): string =>
  Result.match(TaskState.transition(task, event, now), { onSuccess: ({ status }) => status, onFailure: (why) => why })

/** A task after these events, all at the epoch. */
const after = (...happened: ReadonlyArray<TaskState.TaskEvent>): TaskRecord.TaskRecord =>
  happened.reduce((task, event) => Result.getOrThrow(TaskState.transition(task, event, 0)), named("task_1"))

const claimedByA = { event: "claimed", worker: "a" } as const

describe("a task's lost workers", () => {
  const claim = (task: TaskRecord.TaskRecord, worker: string, now: number) =>
    Result.getOrThrow(TaskState.transition(task, { event: "claimed", worker }, now))

  it("are counted if their lease expired, but not if they released the task", () => {
    const lost = claim(after(claimedByA), "b", TaskState.leaseMs)
    assert.deepInclude(lost, { claims: 2, losses: 1 })
    assert.deepInclude(claim(lost, "c", 2 * TaskState.leaseMs), { claims: 3, losses: 2 })
    assert.deepInclude(claim(after(claimedByA, events.released), "b", 0), { claims: 2, losses: 0 })
  })

  it("are poison if there are two", () => {
    const claimed = after(claimedByA)
    const lost = claim(claimed, "b", TaskState.leaseMs)
    const lostAgain = claim(lost, "c", 2 * TaskState.leaseMs)
    assert.deepStrictEqual([claimed, lost, lostAgain].map((task) => TaskState.isPoison(task)), [false, false, true])
    assert.isFalse(TaskState.isPoison(lostAgain, 3))
  })
})

describe("the states of a task", () => {
  const states = {
    queued: after(),
    in_progress: after(claimedByA, events.starting),
    completed: after(claimedByA, events.completed),
    failed: after(claimedByA, events.failed),
    cancelled: after(events.cancelled)
  }

  const expected: Readonly<Record<keyof typeof states, Readonly<Record<keyof typeof events, string>>>> = {
    queued: {
      ...{ claimed: "in_progress", starting: "fenced", declined: "fenced", started: "fenced", renewed: "fenced" },
      ...{
        released: "fenced",
        deferred: "fenced",
        completed: "fenced",
        failed: "fenced",
        cancelled: "cancelled",
        expired: "fenced"
      }
    },
    in_progress: {
      // while the lease of the first worker holds, and after a call may have been made
      ...{ claimed: "fenced", starting: "in_progress", declined: "in_progress", started: "in_progress" },
      renewed: "in_progress",
      ...{
        released: "in_progress",
        deferred: "fenced",
        completed: "completed",
        failed: "failed",
        cancelled: "cancelled",
        expired: "fenced"
      }
    },
    ...Object.fromEntries(
      ["completed", "failed", "cancelled"].map((state) => [
        state,
        Object.fromEntries(Object.keys(events).map((name) => [name, "ended"]))
      ])
    ) as Record<"completed" | "failed" | "cancelled", Record<keyof typeof events, string>>
  }

  for (const [state, task] of Object.entries(states)) {
    it(`${state}: the effect of each event`, () => {
      assert.strictEqual(task.status, state)
      const seen = Object.fromEntries(Object.entries(events).map(([name, event]) => [name, outcome(task, event, 0)]))
      assert.deepStrictEqual(seen, { ...expected[state as keyof typeof states] })
    })
  }

  it("another worker can claim it once the lease expired or was released", () => {
    assert.strictEqual(outcome(states.in_progress, events.claimed, TaskState.leaseMs - 1), "fenced")
    assert.strictEqual(outcome(states.in_progress, events.claimed, TaskState.leaseMs), "in_progress")
    assert.strictEqual(outcome(after(claimedByA, events.released), events.claimed, 0), "in_progress")
  })

  it("waits in its queue again if its key's limits do not allow the work now, and has lost no worker", () => {
    const deferred = after(claimedByA, events.deferred)
    assert.deepInclude(deferred, { status: "queued", holder: null })
    assert.deepInclude(Result.getOrThrow(TaskState.transition(deferred, events.claimed, 0)), { claims: 2, losses: 0 })
  })

  it("fails if its job has expired and no worker has it", () => {
    const later = taskAgeMs + 3 * 60_000
    const errorOf = (task: TaskRecord.TaskRecord) =>
      Result.getOrThrow(TaskState.transition(task, events.expired, later)).error?._tag
    assert.strictEqual(errorOf(states.queued), "QueueTimeout")
    assert.strictEqual(errorOf(after(claimedByA)), "QueueTimeout")
    assert.strictEqual(errorOf(states.in_progress), "WorkerLost")
    const renewed = Result.getOrThrow(TaskState.transition(states.in_progress, events.renewed, later))
    assert.strictEqual(outcome(renewed, events.expired, later), "fenced")
    assert.strictEqual(outcome(states.queued, events.expired, taskAgeMs), "fenced")
    assert.strictEqual(outcome(states.completed, events.expired, later), "ended")
  })

  it("its former worker cannot change it any more, even under the same name", () => {
    const taken = Result.getOrThrow(TaskState.transition(states.in_progress, claimedByA, TaskState.leaseMs))
    assert.deepStrictEqual(taken.holder, { worker: "a", claim: 2 })
    for (const name of ["starting", "started", "renewed", "released", "completed", "failed"] as const) {
      assert.strictEqual(outcome(taken, events[name], TaskState.leaseMs), "fenced", name)
    }
  })

  it("the provider's id for it and its progress outlive the worker", () => {
    const released = after(claimedByA, events.starting, events.started, events.renewed, events.released)
    const taken = Result.getOrThrow(TaskState.transition(released, events.claimed, 1))
    assert.deepStrictEqual(taken.providerTask, { provider: "local", model: "local-video", task: { seed: 7 } })
    const begun = { ...events.renewed, holder: { worker: "b", claim: 2 }, progress: 3 }
    assert.strictEqual(Result.getOrThrow(TaskState.transition(taken, begun, 2)).progress, 50)
  })

  it("all videos of a request have one status together", () => {
    const { cancelled, completed, failed, in_progress: running, queued } = states
    const cases = [
      [[queued, queued], "queued"],
      [[completed, queued], "in_progress"],
      [[failed, running], "in_progress"],
      [[completed, completed], "completed"],
      [[completed, failed], "failed"],
      [[failed, cancelled, completed], "cancelled"]
    ] as const
    for (const [records, expected] of cases) assert.strictEqual(TaskState.statusOf(records), expected)
  })

  it("the records of a request have the first one's id with their index", () => {
    const first = { ...named("task_1"), count: 3 }
    const others = TaskRecord.siblingsOf(first, 0)
    assert.deepStrictEqual(others, [{ ...first, id: "task_1-1", index: 1 }, { ...first, id: "task_1-2", index: 2 }])
    assert.deepStrictEqual(others.map(({ id }) => TaskRecord.firstIdOf(id)), ["task_1", "task_1"])
    assert.isEmpty(TaskRecord.siblingsOf(named("task_1"), 0))
  })
})

describe("a worker that has claimed a task", () => {
  const untouched = after(claimedByA)
  const starting = after(claimedByA, events.starting)
  const started = after(claimedByA, events.starting, events.started)
  const next = (task: TaskRecord.TaskRecord, mayRepeat: boolean | undefined) =>
    TaskState.resumption(task, (name, model) => mayRepeat === undefined ? undefined : { name, model, mayRepeat })

  it("begins it if no provider was called", () => {
    for (const mayRepeat of [true, false, undefined]) {
      assert.deepStrictEqual(next(untouched, mayRepeat), { step: "begin" })
    }
  })

  it("begins it if the provider has declined the call", () => {
    const declined = after(claimedByA, events.starting, events.declined, events.released)
    for (const mayRepeat of [true, false, undefined]) {
      assert.deepStrictEqual(next(declined, mayRepeat), { step: "begin" })
    }
    // the call after that one may have been made
    const again = after(claimedByA, events.starting, events.declined, events.starting)
    assert.deepStrictEqual(next(again, false), { step: "unconfirmed", provider: "local" })
  })

  it("cannot decline a call that was not made, or was accepted", () => {
    for (const task of [untouched, started]) assert.strictEqual(outcome(task, events.declined, 0), "fenced")
  })

  it("continues it under the provider's reference, while the provider is configured", () => {
    for (const mayRepeat of [true, false]) {
      const provider = { name: "local", model: "local-video", mayRepeat }
      assert.deepStrictEqual(next(started, mayRepeat), { step: "continue", provider, reference: { seed: 7 } })
    }
    assert.deepStrictEqual(next(started, undefined), { step: "unconfirmed", provider: "local" })
  })

  it("begins it again only if the call that was perhaps made may be repeated", () => {
    assert.deepStrictEqual(next(starting, true), { step: "begin" })
    for (const mayRepeat of [false, undefined]) {
      assert.deepStrictEqual(next(starting, mayRepeat), { step: "unconfirmed", provider: "local" })
    }
  })
})

it("the queue drops a refused task only if it has ended, or is unknown for longer than a leader may be outdated", () => {
  const settled = (["ended", "fenced", "unreadable", "unknown"] as const).map((refusal) =>
    [0, 59_999, 60_000].map((ageMs) => TaskState.settlementOf(refusal, ageMs))
  )
  assert.deepStrictEqual(settled, [
    ["done", "done", "done"],
    ["later", "later", "later"],
    ["later", "later", "later"],
    ["later", "later", "done"]
  ])
})

describe("a record", () => {
  const tasks = [
    after(),
    after(claimedByA, events.starting, events.declined),
    after(claimedByA, events.starting, events.started),
    after(claimedByA, events.completed)
  ]

  it("is decoded to the same task", () => {
    for (const task of tasks) {
      assert.deepStrictEqual(TaskRecord.decode(TaskRecord.encode(task)), Option.some(task))
    }
    assert.isTrue(Option.isNone(TaskRecord.decode("{\"id\":\"from the future\"}")))
  })

  it("has the form that older gateways read and write", () => {
    const task = after(claimedByA, events.starting, events.started)
    const stored = {
      id: "task_1",
      count: 1,
      index: 0,
      tenant: "key_1",
      operation: "video.generations",
      model: "local-video",
      pool: "default",
      bodyHash: "hash",
      status: "in_progress",
      progress: 0,
      owner: { worker: "a", claim: 1 },
      claims: 1,
      losses: 0,
      leaseUntil: TaskState.leaseMs,
      providerTask: { provider: "local", model: "local-video", task: { seed: 7 } },
      result: null,
      error: null,
      created: 0,
      updated: 0,
      ended: null
    }
    assert.deepStrictEqual(JSON.parse(TaskRecord.encode(task)), stored)
    // the oldest ones make one video of each task, and do not count losses
    const { count: _count, index: _index, losses: _losses, ...oldest } = stored
    assert.deepStrictEqual(TaskRecord.decode(JSON.stringify(oldest)), Option.some(task))
  })
})
