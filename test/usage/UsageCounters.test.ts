/** Usage events are counted exactly once, and the counters can be asked by anything that they are about. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer, Logger, Schedule } from "effect"
import { Nats } from "../../shared/bus/Nats.ts"
import { UsageCounters } from "../../shared/usage/UsageCounters.ts"
import type { UsageQuery, UsageRow } from "../../shared/usage/UsageTable.ts"
import { NatsServer } from "../fixture/NatsServer.ts"
import { store, usageEvent } from "../fixture/UsageEvents.ts"

/** A process that counts, or only answers. */
const process = <E>(server: NatsServer, layer: Layer.Layer<UsageCounters, E, Nats>) =>
  Layer.build(Layer.fresh(layer.pipe(Layer.provideMerge(Nats.layer)))).pipe(
    Effect.provide([
      ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: server.url })),
      // losing the server is what some of these tests are about
      Logger.layer([])
    ])
  )

const november = { from: "2026-11-01", to: "2026-11-30" }

/** The rows of a query, once so many requests have been counted; never returns where it does not come to that. */
const rowsAt = (counters: UsageCounters["Service"], requests: number, query: UsageQuery) =>
  counters.query(query).pipe(
    Effect.repeat({
      until: (rows) => total(rows, ({ requests }) => requests) >= requests,
      schedule: Schedule.spaced("10 millis")
    })
  )

const total = (rows: ReadonlyArray<UsageRow>, of: (row: UsageRow) => number) =>
  rows.reduce((sum, row) => sum + of(row), 0)

describe("counters", () => {
  it.live("hold what each key, model and operation used on each day", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const context = yield* process(server, UsageCounters.layer)
      const counters = Context.get(context, UsageCounters)
      const events = [
        usageEvent({ id: "1" }),
        usageEvent({ id: "2", usage: { inputTokens: 7, outputTokens: 3, cachedTokens: 2, reasoningTokens: 1 } }),
        usageEvent({ id: "3", model: "org/other, large", costUsd: null, durationMs: 90_000 }),
        usageEvent({ id: "4", key: "key_b", outcome: "failure", error: "ProviderTimeout", usage: null, costUsd: null }),
        usageEvent({ id: "5", key: "key_b", outcome: "cancelled", usage: null, costUsd: null, firstByteMs: null }),
        usageEvent({
          id: "6",
          time: Date.UTC(2026, 10, 21),
          operation: "audio.speech",
          usage: { inputTokens: 0, outputTokens: 0, characters: 400, seconds: 2.5 }
        }),
        usageEvent({ id: "7", time: Date.UTC(2026, 11, 1) })
      ]
      yield* store(events).pipe(Effect.provideContext(context))
      const byKey = yield* rowsAt(counters, 6, { ...november, by: "key" })
      assert.deepStrictEqual(byKey.map(({ costUsd, key, requests }) => [key, requests, costUsd]), [
        ["key_a", 4, 0.75],
        ["key_b", 2, 0]
      ])
      const [, b] = byKey
      assert.deepInclude(b, { cancelled: 1, errors: { ProviderTimeout: 1 } })
      assert.deepInclude(b?.duration, { count: 0 })
      assert.deepInclude(b?.firstByte, { count: 1, sumMs: 40 })

      const byModel = yield* counters.query({ ...november, by: ["operation", "model"], key: "key_a" })
      assert.deepStrictEqual(byModel.map(({ model, operation, requests }) => [operation, model, requests]), [
        ["audio.speech", "gpt-5", 1],
        ["chat.completions", "gpt-5", 2],
        ["chat.completions", "org/other, large", 1]
      ])
      assert.deepInclude(byModel[1]?.usage, { inputTokens: 17, outputTokens: 8, cachedTokens: 2, reasoningTokens: 1 })
      assert.deepInclude(byModel[0]?.usage, { characters: 400, seconds: 2.5 })
      assert.deepStrictEqual(byModel[2]?.duration, {
        count: 1,
        sumMs: 90_000,
        buckets: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
      })

      const days = { from: "2026-11-21", to: "2026-12-31", by: "day" } as const
      const byDay = yield* rowsAt(counters, 2, days)
      assert.deepStrictEqual(byDay.map(({ day, requests }) => [day, requests]), [["2026-11-21", 1], ["2026-12-01", 1]])
      assert.deepStrictEqual((yield* counters.csv({ ...november, by: "model" })).split("\r\n"), [
        "model,requests,errors,cancelled,inputTokens,outputTokens,cachedTokens,reasoningTokens,characters,images,seconds," +
        "costUsd,meanDurationMs,meanFirstByteMs",
        "gpt-5,5,1,1,17,8,2,1,400,0,2.5,0.75,120,40",
        "\"org/other, large\",1,0,0,10,5,0,0,0,0,0,0,90000,40",
        ""
      ])
    }))
})
