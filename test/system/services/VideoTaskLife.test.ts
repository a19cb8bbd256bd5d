/** The life of a video task at a provider that counts its calls, over a real server. */
import { assert, describe, it } from "@effect/vitest"
import { Kvm } from "@nats-io/kv"
import { connect } from "@nats-io/transport-node"
import { Clock, ConfigProvider, Deferred, Effect, Exit, Fiber, Layer, Option, Schedule, Scope } from "effect"
import { PrometheusMetrics } from "effect/observability"
import * as VideoWork from "../../../services/video/VideoWork.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { TaskQueue } from "../../../shared/tasks/TaskQueue.ts"
import {
  type JobError,
  ProviderFailed,
  ProviderRateLimited,
  ProviderRejected,
  ProviderTimeout
} from "../../../shared/contract/JobError.ts"
import { Skipped } from "../../../shared/provider/health/Skipped.ts"
import type { Video, VideoEngine } from "../../../shared/provider/call/VideoEngine.ts"
import { type VideoProvider, VideoProviders } from "../../../shared/provider/routing/VideoProviders.ts"
import * as TaskLife from "../../../shared/tasks/TaskLife.ts"
import * as TaskRecord from "../../../shared/tasks/TaskRecord.ts"
import * as TaskState from "../../../shared/tasks/TaskState.ts"
import { TaskStore } from "../../../shared/tasks/TaskStore.ts"
import type { UsageEvent } from "../../../shared/usage/UsageEvent.ts"
import { UsageLog } from "../../../shared/usage/UsageLog.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

const video: Video = {
  bytes: Buffer.from("a video"),
  format: "mp4",
  metadata: { duration: 1, fps: 5, width: 64, height: 64, seed: null }
}

/** A video provider: its behaviour and its record of calls. */
class Provider {
  started = 0
  readonly cancelled: Array<unknown> = []
  readonly followed: Array<unknown> = []
  timeouts: { readonly totalMs?: number } = {}
  /** Reasons why its next calls are skipped, by its name. */
  readonly passes = new Map<string, Array<Skipped>>()
  /** The outcome of a submission. */
  start: Effect.Effect<unknown, JobError> = Effect.sync(() => ({ upstream: this.started }))
  follow: Effect.Effect<Video, JobError> = Effect.succeed(video)

  readonly engine: VideoEngine = {
    start: () =>
      Effect.suspend(() => {
        this.started++
        return this.start
      }),
    follow: (_call, task) =>
      Effect.suspend(() => {
        this.followed.push(task)
        return this.follow
      }),
    cancel: (_call, task) => Effect.sync(() => void this.cancelled.push(task))
  }
}

const request = { model: "m", prompt: "a boat", duration: 1 }

interface Bench {
  readonly provider: Provider
  readonly store: TaskStore["Service"]
  /** Simulates a worker that was lost just before it submitted the task. */
  readonly loseWorker: Effect.Effect<void>
  /** Starts a worker; `end` is what SIGTERM does. */
  readonly worker: (name: string) => Effect.Effect<{ readonly end: Effect.Effect<void> }>
  /** How the first worker's message in the queue was settled. */
  readonly settled: Effect.Effect<TaskState.Settlement>
  /** Rewrites the task's record as a gateway of another version. */
  readonly rewrite: (change: (record: object) => object) => Effect.Effect<void>
  /** The task's usage events, and whether they are stored: its message must not be settled before that. */
  readonly usage: { readonly events: Array<UsageEvent>; isStored: boolean }
  /** Resolves once the task's record satisfies the predicate. */
  readonly until: (holds: (task: TaskRecord.TaskRecord) => boolean) => Effect.Effect<TaskRecord.TaskRecord>
}

/** A task in the queue of its own server, at a provider whose calls may be repeated, or not. */
const withTask = <A, E>(mayRepeat: boolean, test: (bench: Bench) => Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const provider = new Provider()
    const named = (name: string, model: string): VideoProvider => ({
      endpoint: { name, model, provider: { protocol: "openai" as const, timeouts: provider.timeouts } },
      engine: provider.engine,
      mayRepeat,
      begin: ({ follow: goOn, submit }) =>
        Effect.gen(function*() {
          const passed = provider.passes.get(name)?.shift()
          if (passed !== undefined) return yield* Effect.fail(passed)
          return yield* Effect.exit(goOn(yield* submit))
        })
    })
    const layer = Layer.mergeAll(TaskStore.layer({ patienceMs: 5_000 }), TaskQueue.layer).pipe(
      Layer.provide(Nats.layer),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: server.url })))
    )
    return yield* Effect.gen(function*() {
      const store = yield* TaskStore
      const queue = yield* TaskQueue
      const outer = yield* Effect.scope
      const providers = VideoProviders.of({
        forModel: (model) => Effect.succeed([named("upstream", model), named("another", model)]),
        find: named
      })
      const task = TaskRecord.make({
        id: "task_1",
        tenant: "key_1",
        operation: "video.generations",
        model: "m",
        pool: "default",
        bodyHash: "hash"
      }, yield* Clock.currentTimeMillis)
      const settled = yield* Deferred.make<TaskState.Settlement>()
      const rewrite: Bench["rewrite"] = (change) =>
        Effect.promise(async () => {
          const connection = await connect({ servers: server.url })
          const bucket = await new Kvm(connection).open("VIDEO_TASKS")
          const record = (await bucket.get("task_1"))?.json<object>() ?? {}
          await bucket.put("task_1", JSON.stringify(change(record)))
          await connection.close()
        })
      const usage: Bench["usage"] = { events: [], isStored: true }
      const log = UsageLog.of({
        write: (_workload, event, onStored) => {
          usage.events.push(event)
          if (usage.isStored) onStored()
        }
      })
      const worker = Effect.fnUntraced(function*(name: string) {
        const scope = yield* Scope.fork(outer)
        yield* queue.serve({
          queue: "video",
          pool: "default",
          slots: 1,
          graceMs: 0,
          run: (job) =>
            TaskLife.runTask({
              workload: "video",
              work: VideoWork.make({
                store,
                providers,
                guardrail: { checkRequest: ({ body }) => Effect.succeed(body) },
                reserve: (_, use) => use(() => undefined)
              }),
              store,
              worker: name,
              metering: { log, cost: (_, usage) => usage?.seconds ?? null }
            }, job).pipe(Effect.tap((settlement) => Deferred.succeed(settled, settlement)))
        }).pipe(Scope.provide(scope))
        // the first worker creates the queue, which then recognises a duplicate
        yield* Effect.orDie(queue.submit({ ...task, queue: "video", traceparent: undefined }))
        return { end: Scope.close(scope, Exit.void) }
      })
      yield* store.create(task, Buffer.from(JSON.stringify(request)))
      const loseWorker = Effect.gen(function*() {
        const claimed = yield* store.claim("task_1", "lost")
        yield* claimed.record({ event: "starting", provider: "upstream", model: "m" })
        yield* claimed.record({ event: "released" })
      }).pipe(Effect.orDie)
      const until = (holds: (task: TaskRecord.TaskRecord) => boolean) =>
        store.find("task_1").pipe(
          Effect.map(Option.getOrThrow),
          Effect.repeat({ until: holds, schedule: Schedule.spaced("20 millis") }),
          Effect.orDie
        )
      return yield* test({
        provider,
        store,
        usage,
        until,
        loseWorker,
        worker,
        rewrite,
        settled: Deferred.await(settled)
      })
    }).pipe(Effect.scoped, Effect.provide(layer))
  }).pipe(Effect.scoped)

/** A metric's value in this process. */
const metric = (series: string) =>
  Effect.map(PrometheusMetrics.format(), (text) => {
    const line = text.split("\n").find((line) => line.startsWith(`${series} `))
    return Number(line?.slice(series.length) ?? 0)
  })

describe("a task", () => {
  it.live("that another worker continues is not submitted again", () =>
    withTask(false, ({ provider, store, until, worker }) =>
      Effect.gen(function*() {
        provider.follow = Effect.never
        const first = yield* worker("first")
        yield* until(({ providerTask }) => providerTask !== null && providerTask.task !== null)
        yield* first.end
        assert.deepInclude(yield* until(() => true), { status: "in_progress", holder: null })
        provider.follow = Effect.succeed(video)
        yield* worker("second")
        const task = yield* until(({ status }) => TaskState.hasEnded(status))
        assert.deepInclude(task, { status: "completed", claims: 2 })
        assert.strictEqual(provider.started, 1)
        assert.deepStrictEqual(provider.followed.at(-1), { upstream: 1 })
        assert.deepStrictEqual(task.result, { format: "mp4", size: 7, metadata: video.metadata })
        assert.isEmpty(provider.cancelled)
        assert.strictEqual((yield* store.cancel("task_1")).status, "completed")
      })))

  for (const mayRepeat of [false, true]) {
    const again = `is ${mayRepeat ? "" : "not "}submitted again`
    const expect = (task: TaskRecord.TaskRecord) => {
      assert.strictEqual(task.status, mayRepeat ? "completed" : "failed")
      if (!mayRepeat) assert.deepInclude(task.error, { _tag: "ProviderFailed", reason: "unconfirmed" })
    }

    it.live(`that may have been submitted when its worker was lost ${again}`, () =>
      withTask(mayRepeat, ({ loseWorker, provider, until, worker }) =>
        Effect.gen(function*() {
          yield* loseWorker
          yield* worker("first")
          expect(yield* until(({ status }) => TaskState.hasEnded(status)))
          assert.strictEqual(provider.started, mayRepeat ? 1 : 0)
        })))

    it.live(`that its provider did not confirm ${again}`, () =>
      withTask(mayRepeat, ({ provider, until, worker }) =>
        Effect.gen(function*() {
          const { start } = provider
          const silence = new ProviderTimeout({ provider: "upstream", phase: "first byte" })
          provider.start = Effect.suspend(() => provider.started === 1 ? Effect.fail(silence) : start)
          yield* worker("first")
          expect(yield* until(({ status }) => TaskState.hasEnded(status)))
          assert.strictEqual(provider.started, mayRepeat ? 2 : 1)
        })))
  }

  it.live("that its provider certainly did not accept is submitted again", () =>
    withTask(false, ({ provider, until, worker }) =>
      Effect.gen(function*() {
        const { start } = provider
        const busy = new ProviderRateLimited({ provider: "upstream", retryAfterMs: null })
        provider.start = Effect.suspend(() => provider.started === 1 ? Effect.fail(busy) : start)
        const before = yield* metric("gateway_provider_retries_total{provider=\"upstream\"}")
        yield* worker("first")
        assert.strictEqual((yield* until(({ status }) => TaskState.hasEnded(status))).status, "completed")
        assert.strictEqual(provider.started, 2)
        assert.strictEqual(yield* metric("gateway_provider_retries_total{provider=\"upstream\"}"), before + 1)
      })))

  /** Lets the provider decline the first submission, and then has both providers' circuits open, so that the worker waits. */
  const declineOnce = (provider: Provider) => {
    const { start } = provider
    const rest = () => new Skipped({ reason: "resting", retryAfterMs: 60_000 })
    const decline = Effect.suspend(() => {
      provider.passes.set("upstream", [rest(), rest()]).set("another", [rest()])
      return Effect.fail(new ProviderRateLimited({ provider: "upstream", retryAfterMs: null }))
    })
    provider.start = Effect.suspend(() => provider.started === 1 ? decline : start)
    return Effect.sync(() => provider.passes.get("another")?.length).pipe(
      Effect.repeat({ until: (left) => left === 0, schedule: Schedule.spaced("20 millis") })
    )
  }

  it.live("that its provider certainly did not accept is submitted by another worker if the first one closes", () =>
    withTask(false, ({ provider, until, worker }) =>
      Effect.gen(function*() {
        const waits = declineOnce(provider)
        const first = yield* worker("first")
        yield* waits
        yield* first.end
        provider.passes.clear()
        yield* worker("second")
        const task = yield* until(({ status }) => TaskState.hasEnded(status))
        assert.deepInclude(task, { status: "completed", claims: 2, error: null })
        assert.strictEqual(provider.started, 2)
      })))

  it.live("whose provider rejects the gateway's key is submitted to another", () =>
    withTask(false, ({ provider, until, worker }) =>
      Effect.gen(function*() {
        const { start } = provider
        const refused = new ProviderFailed({
          provider: "upstream",
          reason: "credentials",
          status: 401,
          retryAfterMs: null
        })
        provider.start = Effect.suspend(() => provider.started === 1 ? Effect.fail(refused) : start)
        yield* worker("first")
        const task = yield* until(({ status }) => TaskState.hasEnded(status))
        assert.deepInclude(task, { status: "completed", error: null })
        assert.strictEqual(task.providerTask?.provider, "another")
        assert.strictEqual(yield* metric("gateway_provider_fallbacks_total{provider=\"another\"}"), 1)
        // it is started there, and followed
        const timed = "gateway_provider_attempt_duration_seconds_count{provider=\"another\",model=\"m\"}"
        assert.strictEqual(yield* metric(timed), 2)
      })))

  it.live("whose provider is busy or has an open circuit is submitted to another", () =>
    Effect.forEach(
      ["busy", "resting"] as const,
      (reason) =>
        withTask(false, ({ provider, until, worker }) =>
          Effect.gen(function*() {
            provider.passes.set("upstream", [new Skipped({ reason, retryAfterMs: 60_000 })])
            yield* worker("first")
            const task = yield* until(({ status }) => TaskState.hasEnded(status))
            assert.deepInclude(task, { status: "completed", error: null })
            assert.strictEqual(task.providerTask?.provider, "another")
          }))
    ))

  it.live("whose providers all have open circuits waits for them, and records no submission", () =>
    withTask(false, ({ provider, until, worker }) =>
      Effect.gen(function*() {
        const rest = () => new Skipped({ reason: "resting", retryAfterMs: 150 })
        provider.passes.set("upstream", [rest(), rest()]).set("another", [rest()])
        yield* worker("first")
        assert.isNull((yield* until(({ holder }) => holder !== null)).providerTask)
        assert.deepInclude(yield* until(({ status }) => TaskState.hasEnded(status)), { status: "completed", claims: 1 })
        assert.strictEqual(provider.started, 1)
      })))

  it.live("whose record a newer gateway has written is left to a newer worker", () =>
    withTask(false, ({ rewrite, settled, until, worker }) =>
      Effect.gen(function*() {
        yield* rewrite((record) => ({ ...record, status: "paused" }))
        yield* worker("old")
        assert.strictEqual(yield* settled, "later")
        yield* rewrite((record) => ({ ...record, status: "queued" }))
        assert.strictEqual((yield* until(({ status }) => TaskState.hasEnded(status))).status, "completed")
      })))

  it.live("that takes its provider too long is cancelled there", () =>
    withTask(false, ({ provider, until, worker }) =>
      Effect.gen(function*() {
        provider.timeouts = { totalMs: 50 }
        provider.follow = Effect.never
        yield* worker("first")
        const task = yield* until(({ status }) => TaskState.hasEnded(status))
        assert.deepInclude(task.error, { _tag: "ProviderTimeout", phase: "total" })
        assert.deepStrictEqual(provider.cancelled, [{ upstream: 1 }])
      })))

  it.live("whose worker closes while it is submitted keeps the provider's id and is continued", () =>
    withTask(false, ({ provider, until, worker }) =>
      Effect.gen(function*() {
        const confirmed = yield* Deferred.make<void>()
        const { start } = provider
        provider.start = Effect.andThen(Deferred.await(confirmed), start)
        const first = yield* worker("first")
        yield* until(({ providerTask }) => providerTask !== null)
        const ending = yield* Effect.forkChild(first.end)
        yield* Effect.yieldNow
        yield* Deferred.succeed(confirmed, undefined)
        yield* Fiber.join(ending)
        assert.deepInclude((yield* until(() => true)).providerTask, { task: { upstream: 1 } })
        yield* worker("second")
        assert.strictEqual((yield* until(({ status }) => TaskState.hasEnded(status))).status, "completed")
        assert.strictEqual(provider.started, 1)
      })))

  it.live("that is cancelled while it is submitted is still cancelled at its provider", () =>
    withTask(false, ({ provider, store, until, worker }) =>
      Effect.gen(function*() {
        const confirmed = yield* Deferred.make<void>()
        const { start } = provider
        provider.start = Effect.andThen(Deferred.await(confirmed), start)
        yield* worker("first")
        yield* until(({ providerTask }) => providerTask !== null)
        yield* store.cancel("task_1")
        yield* Deferred.succeed(confirmed, undefined)
        yield* Effect.sync(() => provider.cancelled.length).pipe(
          Effect.repeat({ until: (times) => times > 0, schedule: Schedule.spaced("20 millis") })
        )
        assert.deepStrictEqual(provider.cancelled, [{ upstream: 1 }])
        assert.deepInclude(yield* until(() => true), { status: "cancelled", error: null })
      })))

  it.live("that is cancelled is cancelled at its provider, too", () =>
    withTask(false, ({ provider, store, until, worker }) =>
      Effect.gen(function*() {
        provider.follow = Effect.never
        yield* worker("first")
        yield* until(({ providerTask }) => providerTask !== null && providerTask.task !== null)
        yield* store.cancel("task_1")
        yield* Effect.sync(() => provider.cancelled.length).pipe(
          Effect.repeat({ until: (times) => times > 0, schedule: Schedule.spaced("20 millis") })
        )
        assert.deepStrictEqual(provider.cancelled, [{ upstream: 1 }])
        assert.strictEqual((yield* until(() => true)).status, "cancelled")
      })))

  it.live("that its provider rejects fails with the provider's message", () =>
    withTask(false, ({ provider, until, worker }) =>
      Effect.gen(function*() {
        const error = new ProviderRejected({
          provider: "upstream",
          status: 400,
          message: "no boats today",
          type: null,
          param: "prompt",
          code: "policy"
        })
        provider.follow = Effect.fail(error)
        yield* worker("first")
        const task = yield* until(({ status }) => TaskState.hasEnded(status))
        assert.strictEqual(task.status, "failed")
        assert.deepStrictEqual(task.error, error)
      })))

  const written = ({ events }: Bench["usage"], times = 1) =>
    Effect.sync(() => events).pipe(
      Effect.repeat({ until: ({ length }) => length >= times, schedule: Schedule.spaced("20 millis") })
    )

  const { duration: seconds } = video.metadata
  const common = {
    id: "task_1",
    key: "key_1",
    operation: "video.generations",
    model: "m",
    provider: "upstream",
    providerModel: "m",
    attempts: 1,
    firstByteMs: null
  }

  it.live("is metered at its end, and again by the next worker if that was not stored", () =>
    withTask(false, ({ until, usage, worker }) =>
      Effect.gen(function*() {
        usage.isStored = false
        const first = yield* worker("first")
        const { created, ended } = yield* until(({ status }) => TaskState.hasEnded(status))
        const expected: UsageEvent = {
          ...common,
          time: ended ?? -1,
          usage: { inputTokens: 0, outputTokens: 0, seconds },
          costUsd: seconds,
          outcome: "success",
          error: null,
          durationMs: (ended ?? -1) - created
        }
        assert.deepStrictEqual(yield* written(usage), [expected])
        yield* first.end
        usage.isStored = true
        yield* worker("second")
        assert.deepStrictEqual(yield* written(usage, 2), [expected, expected])
      })))

  it.live("is metered as cancelled or failed if it ended so", () =>
    Effect.gen(function*() {
      yield* withTask(false, ({ provider, store, until, usage, worker }) =>
        Effect.gen(function*() {
          provider.follow = Effect.never
          yield* worker("first")
          yield* until(({ providerTask }) => providerTask !== null && providerTask.task !== null)
          yield* store.cancel("task_1")
          const [event] = yield* written(usage)
          assert.deepInclude(event, { ...common, outcome: "cancelled", usage: null, costUsd: null, error: null })
        }))
      yield* withTask(false, ({ provider, store, usage, worker }) =>
        Effect.gen(function*() {
          const waits = declineOnce(provider)
          yield* worker("first")
          yield* waits
          yield* store.cancel("task_1")
          const [event] = yield* written(usage)
          assert.deepInclude(event, { ...common, outcome: "cancelled", usage: null, costUsd: null, error: null })
        }))
      yield* withTask(false, ({ provider, usage, worker }) =>
        Effect.gen(function*() {
          provider.follow = Effect.fail(new ProviderTimeout({ provider: "upstream", phase: "idle" }))
          yield* worker("first")
          const [event] = yield* written(usage)
          assert.deepInclude(event, { ...common, outcome: "failure", error: "ProviderTimeout", costUsd: null })
        }))
    }))
})
