/** Usage stays with the teams that it was counted for when its key moves to another team. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, Schedule } from "effect"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { KeyTeams } from "../../../shared/usage/KeyTeams.ts"
import { dailyTally, monthlyTally } from "../../../shared/usage/Tally.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { storePages, usageEvent, usageProcess } from "../../fixture/nats/UsageEvents.ts"

const old = "team_old"
const other = "team_other"
const top = "team_top"

/** Counts usage of keys that are in one team. Ends with the scope. */
const startCounters = Effect.fnUntraced(function*(server: NatsServer, team: string) {
  const teams = Layer.succeed(KeyTeams, () => [team, top])
  const context = yield* usageProcess(server, UsageCounters.layer.pipe(Layer.provide(teams)))
  const { days, months } = yield* Effect.all({
    days: openBucket(dailyTally.bucket),
    months: openBucket(monthlyTally.bucket)
  }).pipe(Effect.provideContext(context))
  return {
    store: (...pages: Parameters<typeof storePages>[0]) => storePages(pages).pipe(Effect.provideContext(context)),
    untilCounted: (pages: number) =>
      days.get("checkpoint").pipe(Effect.repeat({
        until: Option.exists((text) => text.endsWith(`"sequence":${pages}}`)),
        schedule: Schedule.spaced("20 millis")
      })),
    forgetProgress: days.delete("checkpoint"),
    requests: Context.get(context, UsageCounters).query({ from: "2026-11-01", to: "2026-11-30", by: "team" }).pipe(
      Effect.map((rows) => rows.map(({ requests, team }) => [team, requests]))
    ),
    spent: Effect.forEach(
      ["key_a", old, other, top],
      (id) =>
        Effect.map(
          months.get(`2026-11.${id}`),
          (record) => Option.getOrUndefined(Option.flatMap(record, monthlyTally.decode))?.value ?? 0
        )
    )
  }
})

describe("after its key has moved, an event", () => {
  it.live("that is withdrawn is withdrawn from the teams that it was counted for", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      yield* Effect.scoped(Effect.gen(function*() {
        const { store, untilCounted } = yield* startCounters(server, old)
        yield* store([usageEvent({ id: "1", outcome: "failure", error: "WorkerLost" })])
        yield* untilCounted(1)
      }))
      const { requests, spent, store, untilCounted } = yield* startCounters(server, other)
      yield* store([usageEvent({ id: "1", costUsd: 0.5 })])
      yield* untilCounted(2)
      assert.deepStrictEqual(yield* requests, [[old, 0], [other, 1]])
      assert.deepStrictEqual(yield* spent, [0.5, 0, 0.5, 0.5])
    }))

  it.live("that is read again counts for no other team", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      yield* Effect.scoped(Effect.gen(function*() {
        const { forgetProgress, store, untilCounted } = yield* startCounters(server, old)
        yield* store([usageEvent({ id: "1" })])
        yield* untilCounted(1)
        yield* forgetProgress
      }))
      const { requests, spent, store, untilCounted } = yield* startCounters(server, other)
      yield* untilCounted(1)
      yield* store([usageEvent({ id: "2" })])
      yield* untilCounted(2)
      assert.deepStrictEqual(yield* requests, [[old, 1], [other, 1]])
      assert.deepStrictEqual(yield* spent, [0.5, 0.25, 0.25, 0.5])
    }))
})
