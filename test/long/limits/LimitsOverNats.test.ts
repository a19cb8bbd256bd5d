/** Limits over a real NATS for several windows, which are short; each replica has a connection of its own. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, ConfigProvider, Context, Effect, Exit, Fiber, Layer, Logger } from "effect"
import { Nats } from "../../../shared/nats/Nats.ts"
import type { Limit, UnitsMissing } from "../../../shared/bounds/Limit.ts"
import { Limits } from "../../../shared/limits/Limits.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { Log } from "../../fixture/calls/Replicas.ts"

const replica = (server: NatsServer) =>
  Layer.build(Layer.fresh(Limits.layerProviders.pipe(Layer.provideMerge(Nats.layer)))).pipe(
    Effect.provide([
      ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: server.url })),
      // one of these tests loses its connection on purpose
      Logger.layer([])
    ]),
    Effect.map((built) => ({ limits: Context.get(built, Limits), nats: Context.get(built, Nats) })),
    Effect.orDie
  )

const replicas = (server: NatsServer, count: number) =>
  Effect.forEach(Array.from({ length: count }), () => replica(server))

const take = (limits: Limits["Service"], limit: Limit, withinMs: number, units = 1) =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => limits.take(limit, units, now + withinMs))

/** This many askers repeat their requests until a time. */
const ask = (log: Log, limits: Limits["Service"], limit: Limit, askers: number, until: number) => {
  const once: Effect.Effect<boolean> = Effect.flatMap(
    Clock.currentTimeMillis,
    (now) =>
      now >= until ? Effect.succeed(false) : limits.take(limit, 1, until).pipe(
        Effect.andThen(log.note),
        Effect.as(true),
        Effect.catch(({ retryAfterMs }: UnitsMissing) =>
          Effect.as(Effect.sleep(Math.min(retryAfterMs, until - now)), true)
        )
      )
  )
  return Effect.forEach(
    Array.from({ length: askers }),
    () => Effect.repeat(once, { while: (more) => more }),
    { concurrency: "unbounded", discard: true }
  )
}

describe.concurrent("over NATS", () => {
  const windowMs = 4_000
  it.live.each([[60, 4], [100, 4], [2, 3], [2_000, 4]] as const)(
    "a limit of %s holds over %s replicas, and is used up",
    ([limit, count]) =>
      Effect.gen(function*() {
        const server = yield* NatsServer.make()
        const all = yield* replicas(server, count)
        const log = new Log()
        const begun = yield* Clock.currentTimeMillis
        const until = begun + 3 * windowMs
        const requests = { key: `requests.${limit}`, limit, windowMs }
        yield* Effect.forEach(
          all,
          ({ limits }) => ask(log, limits, requests, Math.min(200, limit), until),
          { concurrency: "unbounded" }
        )
        assert.isAtMost(log.windows(windowMs).most, limit)
        assert.isAtLeast(log.at.length, 3 * limit * 0.92)
        // long enough to include a used up window, even if a busy machine delays it
        assert.isAtLeast(log.windows(2 * windowMs, until).least, limit * 0.92)
      })
  )

  it.live("without the server, nothing more is admitted and nothing hangs; all resumes with it", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const all = yield* replicas(server, 2)
      const log = new Log()
      const limit: Limit = { key: "requests", limit: 40, windowMs }
      const begun = yield* Clock.currentTimeMillis
      const until = begun + 4 * windowMs
      const asking = yield* Effect.forkChild(
        Effect.forEach(all, ({ limits }) => ask(log, limits, limit, 20, until), { concurrency: "unbounded" })
      )
      yield* Effect.promise(() => eventually(async () => log.at.length, (count) => count >= 40))
      yield* Effect.promise(() => server.kill())
      const connected = async () => all.filter(({ nats }) => nats.isConnected()).length
      yield* Effect.promise(() => eventually(connected, (count) => count === 0))
      const refused = yield* Effect.exit(take(all[0]!.limits, limit, 1_000, 40))
      assert.isTrue(Exit.isFailure(refused))
      yield* Effect.promise(() => server.restart())
      yield* Fiber.join(asking)
      assert.isAtMost(log.windows(windowMs).most, 40)
      assert.isAtLeast(log.at.length, 3 * 40)
    }))
})
