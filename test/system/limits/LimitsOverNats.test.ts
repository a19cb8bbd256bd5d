/** Limits over a real NATS, each replica with a connection of its own. `test/unit/limits/Limits.test.ts` shows how windows pass. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, ConfigProvider, Context, Effect, Exit, Layer, Logger, Schedule } from "effect"
import { Nats } from "../../../shared/nats/Nats.ts"
import type { Limit } from "../../../shared/bounds/Limit.ts"
import { Limits } from "../../../shared/limits/Limits.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

interface Replica {
  readonly limits: Limits["Service"]
  readonly nats: Nats["Service"]
}

const replica = (server: NatsServer) =>
  Layer.build(Layer.fresh(Limits.layerProviders.pipe(Layer.provideMerge(Nats.layer)))).pipe(
    Effect.provide([
      ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: server.url })),
      // one of these tests loses its connection on purpose
      Logger.layer([])
    ]),
    Effect.map((built): Replica => ({ limits: Context.get(built, Limits), nats: Context.get(built, Nats) })),
    Effect.orDie
  )

const replicas = (server: NatsServer, count: number) =>
  Effect.forEach(Array.from({ length: count }), () => replica(server))

/** Fails if the units cannot be available within this time. */
const take = ({ limits }: Replica, limit: Limit, withinMs: number, units = 1) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => limits.take(limit, units, now + withinMs))

/** Longer than a test. */
const windowMs = 600_000

/** How many of this number of requests to each replica, all at the same time, are admitted. */
const admitted = (all: ReadonlyArray<Replica>, limit: Limit, each: number) =>
  Effect.map(
    Effect.forEach(
      all.flatMap((one) => Array.from({ length: each }, () => one)),
      (one) => Effect.exit(take(one, limit, 500)),
      { concurrency: "unbounded" }
    ),
    (exits) => exits.filter(Exit.isSuccess).length
  )

/** Repeats such requests until this many in all are admitted. A replica has to return the units that it does not use. */
const admittedUntil = (all: ReadonlyArray<Replica>, limit: Limit, count: number) =>
  Effect.gen(function*() {
    let sum = 0
    while (sum < count) sum += yield* admitted(all, limit, Math.min(count, 200))
    return sum
  })

describe.concurrent("over NATS", () => {
  it.live.each([[60, 4], [2, 3], [2_000, 4]] as const)(
    "a limit of %s holds over %s replicas, and is used up",
    ([limit, count]) =>
      Effect.gen(function*() {
        const all = yield* replicas(yield* NatsServer.make(), count)
        const requests = { key: `requests.${limit}`, limit, windowMs }
        assert.strictEqual(yield* admittedUntil(all, requests, limit), limit)
        assert.strictEqual(yield* admitted(all, requests, 1), 0)
      })
  )

  it.live("a limit of concurrent calls holds over three replicas", () =>
    Effect.gen(function*() {
      const all = yield* replicas(yield* NatsServer.make(), 3)
      const limit: Limit = { key: "calls", limit: 5, windowMs: 0 }
      let running = 0
      let most = 0
      const done = all.map(() => 0)
      const call = (one: Replica, index: number) =>
        Effect.acquireUseRelease(
          take(one, limit, 60_000),
          () =>
            Effect.gen(function*() {
              most = Math.max(most, ++running)
              // other calls meanwhile ask the server, too
              yield* Effect.repeat(Effect.promise(() => one.nats.connection.flush()), { times: 3 })
              done[index]!++
            }),
          (taken) =>
            Effect.sync(() => {
              running--
              taken.settle(0)
            })
        )
      yield* Effect.forEach(
        all.flatMap((one, index) => Array.from({ length: 5 }, () => ({ one, index }))),
        ({ index, one }) => Effect.repeat(call(one, index), Schedule.recurs(9)),
        { concurrency: "unbounded" }
      )
      assert.isAtMost(most, 5)
      assert.deepStrictEqual(done, [50, 50, 50])
    }))

  it.live("without the server, nothing more is admitted and nothing hangs; all resumes with it", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const all = yield* replicas(server, 2)
      const limit: Limit = { key: "requests", limit: 40, windowMs }
      yield* Effect.forEach(Array.from({ length: 20 }), (_, at) => take(all[at % 2]!, limit, 60_000))
      yield* Effect.promise(() => server.kill())
      const connected = async () => all.filter(({ nats }) => nats.isConnected()).length
      yield* Effect.promise(() => eventually(connected, (count) => count === 0))
      // a replica still has the units of its lease
      const meanwhile = yield* admitted(all, limit, 40)
      assert.isAtMost(meanwhile, 20)
      const refused = yield* Effect.exit(take(all[0]!, limit, 500, 40))
      assert.isTrue(Exit.isFailure(refused))
      yield* Effect.promise(() => server.restart())
      assert.strictEqual(yield* admittedUntil(all, limit, 20 - meanwhile), 20 - meanwhile)
      assert.strictEqual(yield* admitted(all, limit, 1), 0)
    }))
})
