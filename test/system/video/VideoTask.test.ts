/** The states of a video task, and their exclusive changes by one worker at a time over a real server. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Option, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Nats } from "../../../shared/nats/Nats.ts"
import { InternalError } from "../../../shared/contract/JobError.ts"
import * as VideoTask from "../../../shared/tasks/VideoTask.ts"
import { TaskRefused, VideoTasks } from "../../../shared/tasks/VideoTasks.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

const named = (id: string): VideoTask.VideoTask =>
  VideoTask.make({
    id,
    tenant: "key_1",
    operation: "video.generations",
    model: "local-video",
    pool: "default",
    bodyHash: "hash"
  }, 0)

const owner = { worker: "a", claim: 1 }
const result: VideoTask.VideoResult = {
  format: "mp4",
  size: 3,
  metadata: { duration: 1, fps: 5, width: 64, height: 64, seed: 7 }
}

const events = {
  claimed: { event: "claimed", worker: "b" },
  starting: { event: "starting", owner, provider: "local", model: "local-video" },
  started: { event: "started", owner, task: { seed: 7 } },
  renewed: { event: "renewed", owner, progress: 50 },
  released: { event: "released", owner },
  completed: { event: "completed", owner, result },
  failed: { event: "failed", owner, error: new InternalError() },
  cancelled: { event: "cancelled" }
} as const satisfies Record<string, VideoTask.TaskEvent>

/** The outcome of an event at a moment: the new status, or the reason for a rejection. */
const outcome = (task: VideoTask.VideoTask, event: VideoTask.TaskEvent, now: number): string =>
  Result.match(VideoTask.transition(task, event, now), { onSuccess: ({ status }) => status, onFailure: (why) => why })

/** A task after these events, all at the epoch. */
const after = (...happened: ReadonlyArray<VideoTask.TaskEvent>): VideoTask.VideoTask =>
  happened.reduce((task, event) => Result.getOrThrow(VideoTask.transition(task, event, 0)), named("task_1"))

const claimedByA = { event: "claimed", worker: "a" } as const

describe("a task's lost workers", () => {
  const claim = (task: VideoTask.VideoTask, worker: string, now: number) =>
    Result.getOrThrow(VideoTask.transition(task, { event: "claimed", worker }, now))

  it("are counted if their lease expired, but not if they released the task", () => {
    const lost = claim(after(claimedByA), "b", VideoTask.leaseMs)
    assert.deepInclude(lost, { claims: 2, losses: 1 })
    assert.deepInclude(claim(lost, "c", 2 * VideoTask.leaseMs), { claims: 3, losses: 2 })
    assert.deepInclude(claim(after(claimedByA, events.released), "b", 0), { claims: 2, losses: 0 })
  })

  it("are zero in the record of an older gateway, of which every task is one video", () => {
    const { count: _count, index: _index, losses: _losses, ...older } = named("task_1")
    assert.deepStrictEqual(Option.getOrThrow(VideoTask.decode(JSON.stringify(older))), named("task_1"))
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
      ...{ claimed: "in_progress", starting: "fenced", started: "fenced", renewed: "fenced", released: "fenced" },
      ...{ completed: "fenced", failed: "fenced", cancelled: "cancelled" }
    },
    in_progress: {
      // while the lease of the first worker holds
      ...{ claimed: "fenced", starting: "in_progress", started: "in_progress", renewed: "in_progress" },
      ...{ released: "in_progress", completed: "completed", failed: "failed", cancelled: "cancelled" }
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
    assert.strictEqual(outcome(states.in_progress, events.claimed, VideoTask.leaseMs - 1), "fenced")
    assert.strictEqual(outcome(states.in_progress, events.claimed, VideoTask.leaseMs), "in_progress")
    assert.strictEqual(outcome(after(claimedByA, events.released), events.claimed, 0), "in_progress")
  })

  it("its former worker cannot change it any more, even under the same name", () => {
    const taken = Result.getOrThrow(VideoTask.transition(states.in_progress, claimedByA, VideoTask.leaseMs))
    assert.deepStrictEqual(taken.owner, { worker: "a", claim: 2 })
    for (const name of ["starting", "started", "renewed", "released", "completed", "failed"] as const) {
      assert.strictEqual(outcome(taken, events[name], VideoTask.leaseMs), "fenced", name)
    }
  })

  it("the provider's id for it and its progress outlive the worker", () => {
    const released = after(claimedByA, events.starting, events.started, events.renewed, events.released)
    const taken = Result.getOrThrow(VideoTask.transition(released, events.claimed, 1))
    assert.deepStrictEqual(taken.providerTask, { provider: "local", model: "local-video", task: { seed: 7 } })
    const begun = { ...events.renewed, owner: { worker: "b", claim: 2 }, progress: 3 }
    assert.strictEqual(Result.getOrThrow(VideoTask.transition(taken, begun, 2)).progress, 50)
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
    for (const [records, expected] of cases) assert.strictEqual(VideoTask.statusOf(records), expected)
  })

  it("the records of a request have the first one's id with their index", () => {
    const first = { ...named("task_1"), count: 3 }
    const others = VideoTask.siblingsOf(first, 0)
    assert.deepStrictEqual(others, [{ ...first, id: "task_1-1", index: 1 }, { ...first, id: "task_1-2", index: 2 }])
    assert.deepStrictEqual(others.map(({ id }) => VideoTask.firstIdOf(id)), ["task_1", "task_1"])
    assert.isEmpty(VideoTask.siblingsOf(named("task_1"), 0))
  })

  it("a record is decoded to the same task", () => {
    for (const task of Object.values(states)) {
      assert.deepStrictEqual(VideoTask.decode(VideoTask.encode(task)), Option.some(task))
    }
    assert.isTrue(Option.isNone(VideoTask.decode("{\"id\":\"from the future\"}")))
  })
})

/** Runs a test with one process's store on its own server. The test controls the time. */
const withStore = <A, E>(
  test: (tasks: VideoTasks["Service"], server: NatsServer) => Effect.Effect<A, E>
) =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const store = VideoTasks.layer({ patienceMs: 1_000 }).pipe(
      Layer.provide(Nats.layer),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: server.url })))
    )
    return yield* Effect.flatMap(VideoTasks, (tasks) => test(tasks, server)).pipe(Effect.provide(store))
  }).pipe(Effect.scoped)

describe("a stored task", () => {
  it.effect("is created once, whichever request comes first", () =>
    withStore((tasks) =>
      Effect.gen(function*() {
        const made = yield* Effect.forEach(
          Array.from({ length: 5 }, (_, index) => ({ ...named("task_1"), bodyHash: `hash ${index}` })),
          (task) => tasks.create(task, Buffer.from(task.bodyHash)),
          { concurrency: "unbounded" }
        )
        assert.lengthOf(new Set(made.map(({ bodyHash }) => bodyHash)), 1)
        // the bodies of the later ones have not replaced the first one's
        const body = yield* tasks.readBody(made[0]!)
        assert.strictEqual(Buffer.from(body).toString(), made[0]!.bodyHash)
        assert.isTrue(Option.isNone(yield* tasks.find("task_2")))
      })
    ))

  it.effect("is claimed by one of two workers", () =>
    withStore((tasks) =>
      Effect.gen(function*() {
        yield* tasks.create(named("task_1"), new Uint8Array(0))
        const claims = yield* Effect.forEach(["a", "b"], (worker) => Effect.result(tasks.claim("task_1", worker)), {
          concurrency: "unbounded"
        })
        assert.lengthOf(claims.filter(Result.isSuccess), 1)
        assert.deepStrictEqual(claims.flatMap((claim) => Result.isFailure(claim) ? [claim.failure] : []), [
          new TaskRefused({ refusal: "fenced" })
        ])
      })
    ))

  it.effect("is lost to a worker that slept, which then cannot write to it", () =>
    withStore((tasks) =>
      Effect.gen(function*() {
        yield* tasks.create(named("task_1"), new Uint8Array(0))
        const first = yield* tasks.claim("task_1", "a")
        yield* TestClock.adjust(VideoTask.leaseMs)
        const second = yield* tasks.claim("task_1", "b")
        for (const event of [{ event: "renewed", progress: 1 }, { event: "completed", result }] as const) {
          const refused = yield* Effect.flip(first.record(event))
          assert.deepStrictEqual(refused, new TaskRefused({ refusal: "fenced" }))
        }
        yield* second.record({ event: "completed", result })
        const task = Option.getOrThrow(yield* tasks.find("task_1"))
        assert.deepInclude(task, { status: "completed", owner: null, claims: 2, progress: 100 })
      })
    ))

  it.effect("cannot be changed by its worker after a cancellation", () =>
    withStore((tasks) =>
      Effect.gen(function*() {
        yield* tasks.create(named("task_1"), new Uint8Array(0))
        const owned = yield* tasks.claim("task_1", "a")
        yield* owned.record({ event: "renewed", progress: 10 })
        assert.strictEqual((yield* tasks.cancel("task_1")).status, "cancelled")
        assert.deepStrictEqual(
          yield* Effect.flip(owned.record({ event: "completed", result })),
          new TaskRefused({ refusal: "ended" })
        )
        assert.strictEqual((yield* tasks.cancel("task_1")).status, "cancelled")
        assert.deepStrictEqual(
          yield* Effect.flip(tasks.cancel("task_2")),
          new TaskRefused({ refusal: "unknown" })
        )
      })
    ))

  it.effect("applies concurrent changes one after the other", () =>
    withStore((tasks) =>
      Effect.gen(function*() {
        yield* tasks.create(named("task_1"), new Uint8Array(0))
        const owned = yield* tasks.claim("task_1", "a")
        yield* Effect.forEach(
          Array.from({ length: 20 }, (_, index) => index),
          (progress) => owned.record({ event: "renewed", progress }),
          { concurrency: "unbounded", discard: true }
        )
        assert.strictEqual(owned.current().progress, 19)
        assert.deepStrictEqual(Option.getOrThrow(yield* tasks.find("task_1")), owned.current())
      })
    ))

  it.effect("has its video in parts, from which any range can be read", () =>
    withStore((tasks) =>
      Effect.gen(function*() {
        const bytes = Buffer.alloc(2_500_000)
        for (let at = 0; at < bytes.length; at += 4) bytes.writeUInt32LE(at, at)
        yield* tasks.writeContent("task_1", bytes)
        for (
          const [from, until] of [[0, bytes.length], [0, 1], [1_048_575, 1_048_577], [2_499_999, 2_500_000]] as const
        ) {
          const read = yield* Stream.runCollect(tasks.readContent("task_1", from, until))
          assert.isTrue(Buffer.concat([...read]).equals(bytes.subarray(from, until)), `${from} to ${until}`)
        }
      })
    ))
})
