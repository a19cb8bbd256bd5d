/** Usage events are counted and listed once each, and the counters can be queried by all their dimensions. */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { Array, Context, Effect, Fiber, Layer, Option, Schedule } from "effect"
import { PrometheusMetrics } from "effect/observability"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { RequestLog } from "../../../services/console/handlers/RequestLog.ts"
import { eventConfig } from "../../../shared/nats/EventStream.ts"
import { type Bucket, openBucket } from "../../../shared/nats/KeyValue.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { bucketStream, events } from "../../../shared/nats/Storage.ts"
import { KeyTeams } from "../../../shared/usage/KeyTeams.ts"
import { countedUntilKey, dailyTally, monthlyTally } from "../../../shared/usage/Tally.ts"
import { UsageCounters } from "../../../shared/usage/UsageCounters.ts"
import { inherited } from "../../fixture/general/Inherited.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import {
  manyEvents,
  rowsAt,
  store,
  storePages,
  total,
  usageEvent,
  usageProcess
} from "../../fixture/nats/UsageEvents.ts"

const november = { from: "2026-11-01", to: "2026-11-30" }
const byKey = { ...november, by: "key" } as const

const startCounters = (server: NatsServer) => usageProcess(server, UsageCounters.layer)

/** Waits until the metric of the delay in seconds is like this; it is `NaN` if there is none. */
const untilDelay = (holds: (seconds: number) => boolean) =>
  PrometheusMetrics.format().pipe(
    Effect.map((text) => Number(/^gateway_usage_delay_seconds (.*)$/m.exec(text)?.[1])),
    Effect.repeat({ until: holds, schedule: Schedule.spaced("20 millis") })
  )

describe("counters", () => {
  it.live("are read by a few queries at a time, however many are asked", () =>
    Effect.gen(function*() {
      const context = yield* startCounters(yield* NatsServer.make())
      const counters = Context.get(context, UsageCounters)
      yield* store([usageEvent({ id: "1" })]).pipe(Effect.provideContext(context))
      yield* rowsAt(counters, 1, byKey)
      const { connection } = Context.get(context, Nats)
      const { streams } = yield* Effect.promise(() => jetstreamManager(connection))
      const readers: Array<number> = []
      const look = Effect.promise(async () => {
        const { state } = await streams.info(bucketStream(dailyTally.bucket))
        readers.push(state.consumer_count)
      })
      const looking = yield* Effect.forkChild(Effect.forever(look))
      const asked = Array.makeBy(100, () => counters.query(byKey))
      assert.lengthOf(yield* Effect.all(asked, { concurrency: "unbounded" }), 100)
      yield* Fiber.interrupt(looking)
      // the server removes the reader of a query a moment after its end
      assert.isAtMost(Math.max(...readers), 8)
    }))

  it.live("hold the usage of each key, model and operation by day", () =>
    Effect.gen(function*() {
      const context = yield* startCounters(yield* NatsServer.make())
      const counters = Context.get(context, UsageCounters)
      const events = [
        usageEvent({ id: "1", repeatedCalls: 2 }),
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
      const rows = yield* rowsAt(counters, 6, byKey)
      assert.deepStrictEqual(rows.map(({ costUsd, key, requests }) => [key, requests, costUsd]), [
        ["key_a", 4, 0.75],
        ["key_b", 2, 0]
      ])
      const [, b] = rows
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

      const byDay = yield* rowsAt(counters, 2, { from: "2026-11-21", to: "2026-12-31", by: "day" })
      assert.deepStrictEqual(byDay.map(({ day, requests }) => [day, requests]), [["2026-11-21", 1], ["2026-12-01", 1]])
      assert.deepStrictEqual(
        [...yield* counters.lastDays({ from: "2026-09-15", to: "2026-11-30" })].toSorted(),
        [["key_a", "2026-11-21"], ["key_b", "2026-11-20"]]
      )
      assert.deepStrictEqual((yield* counters.csv({ ...november, by: "model" })).split("\r\n"), [
        "model,requests,errors,cancelled,repeatedCalls,inputTokens,outputTokens,cachedTokens,cacheWriteTokens," +
        "cacheWriteHourTokens,reasoningTokens,inputTextTokens,inputAudioTokens,inputImageTokens,outputTextTokens,outputAudioTokens,outputImageTokens," +
        "estimatedTokens,characters,searchUnits,images,seconds,costUsd,meanDurationMs,meanFirstByteMs",
        "gpt-5,5,1,1,2,17,8,2,0,0,1,0,0,0,0,0,0,0,400,0,0,2.5,0.75,120,40",
        "\"org/other, large\",1,0,0,0,10,5,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,90000,40",
        ""
      ])
    }))

  it.live("count an event once, however often it is sent and however many processes read it", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const [context] = yield* Effect.all([startCounters(server), startCounters(server), startCounters(server)])
      const events = manyEvents(0, 400)
      const sent = yield* Effect.all([store(events), store(events.toReversed()), store(events)], {
        concurrency: "unbounded"
      }).pipe(Effect.provideContext(context))
      assert.strictEqual(sent.reduce((sum, fresh) => sum + fresh), 400)
      const rows = yield* rowsAt(Context.get(context, UsageCounters), 400, byKey)
      assert.deepStrictEqual(
        rows.map(({ costUsd, requests }) => `${requests} for ${costUsd}`),
        Array.replicate("100 for 25", 4)
      )
    }))

  it.live("count an event once, in however many pages it is", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const [context] = yield* Effect.all([startCounters(server), startCounters(server)])
      const events = manyEvents(0, 400)
      const last = usageEvent({ id: "last", key: "key_last" })
      yield* Effect.all([
        store(events.slice(0, 200)),
        storePages(Array.chunksOf(events, 16)),
        storePages(Array.chunksOf(events.toReversed(), 7))
      ], { concurrency: "unbounded" }).pipe(
        Effect.andThen(storePages([[last, last]])),
        Effect.provideContext(context)
      )
      const rows = yield* rowsAt(Context.get(context, UsageCounters), 401, byKey)
      assert.deepStrictEqual(
        rows.map(({ costUsd, requests }) => `${requests} for ${costUsd}`),
        [...Array.replicate("100 for 25", 4), "1 for 0.25"]
      )
    }))

  it.live("count a request that a lost worker's own event comes for later as that event says", () =>
    Effect.gen(function*() {
      const context = yield* startCounters(yield* NatsServer.make())
      const counters = Context.get(context, UsageCounters)
      const time = Date.UTC(2026, 10, 20, 23, 59)
      const lost = { outcome: "failure", error: "WorkerLost", provider: null, usage: null, costUsd: null } as const
      const late = { ...lost, time: Date.UTC(2026, 10, 21), firstByteMs: null }
      const ids = ["1", "2", "3"]
      yield* storePages([
        ids.map((id) => usageEvent({ id, ...late })),
        [usageEvent({ id: "1", time }), usageEvent({ id: "2", time: late.time })],
        [usageEvent({ id: "1", ...late }), usageEvent({ id: "1", time }), usageEvent({ id: "last", key: "key_last" })]
      ]).pipe(Effect.provideContext(context))
      // the last page is counted
      yield* rowsAt(counters, 1, { ...byKey, key: "key_last" })
      const rows = yield* counters.query({ ...november, by: "day", key: "key_a" })
      assert.deepStrictEqual(
        rows.map(({ costUsd, day, duration, errors, requests, usage }) => [
          day,
          requests,
          errors,
          costUsd,
          usage.outputTokens,
          duration.count
        ]),
        [["2026-11-20", 1, {}, 0.25, 5, 1], ["2026-11-21", 2, { WorkerLost: 1 }, 0.25, 5, 1]]
      )
    }))

  it.live("list the latest requests of all pages once each", () =>
    Effect.gen(function*() {
      const context = yield* usageProcess(yield* NatsServer.make(), UsageCounters.layerQuery)
      const log = Context.get(yield* Layer.build(RequestLog.layer).pipe(Effect.provideContext(context)), RequestLog)
      const ids = (count: number) => Effect.map(log.latest(count), (events) => events.map(({ id }) => Number(id)))
      assert.deepStrictEqual(yield* ids(200), [])
      yield* store(manyEvents(0, 60)).pipe(Effect.provideContext(context))
      yield* storePages([...Array.chunksOf(manyEvents(60, 100), 8), manyEvents(96, 104)]).pipe(
        Effect.provideContext(context)
      )
      const newestFirst = (from: number, until: number) => Array.range(from, until - 1).toReversed()
      assert.deepStrictEqual(yield* ids(200), newestFirst(0, 104))
      assert.deepStrictEqual(yield* ids(10), newestFirst(96, 104))
      assert.deepStrictEqual(yield* ids(70), newestFirst(38, 104))

      const lost = { outcome: "failure", error: "WorkerLost", provider: null } as const
      const pages = [{ id: "104", ...lost }, { id: "104" }, { id: "105" }, { id: "105", ...lost }]
      yield* storePages(pages.map((page) => [usageEvent(page)])).pipe(Effect.provideContext(context))
      assert.deepStrictEqual(
        (yield* log.latest(20)).slice(0, 3).map(({ id, outcome }) => [id, outcome]),
        [["105", "success"], ["104", "success"], ["103", "success"]]
      )
    }))

  it.live("skip a malformed event and count those after it", () =>
    Effect.gen(function*() {
      const context = yield* startCounters(yield* NatsServer.make())
      const [good] = manyEvents(0, 1)
      const bad = { ...usageEvent({ id: "bad" }), key: "no token.*" }
      yield* store([bad, good!]).pipe(Effect.provideContext(context))
      yield* storePages([manyEvents(1, 2).concat(bad, manyEvents(2, 3))]).pipe(Effect.provideContext(context))
      const rows = yield* rowsAt(Context.get(context, UsageCounters), 3, byKey)
      assert.deepStrictEqual(rows.map(({ key, requests }) => [key, requests]), [["key_0", 1], ["key_1", 1], [
        "key_2",
        1
      ]])
    }))
})

/** All stored records of the counters, without the one that says up to when events are counted. */
const everything = Effect.gen(function*() {
  const buckets = yield* Effect.forEach([dailyTally.bucket, monthlyTally.bucket], (name) => openBucket(name))
  const stored: Array<{ readonly bucket: Bucket; readonly key: string; readonly value: string }> = []
  for (const bucket of buckets) {
    for (const { key, value } of yield* bucket.entries) {
      if (Option.isSome(value) && key !== countedUntilKey) stored.push({ bucket, key, value: value.value })
    }
  }
  return stored.toSorted((a, b) => a.key < b.key ? -1 : 1)
})

describe("a failure while counting", () => {
  it.live("between any two of its writes loses nothing and counts nothing twice", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const onlooker = yield* usageProcess(server, UsageCounters.layerQuery)
      const stateAfter = (from: number, until: number) =>
        Effect.scoped(Effect.gen(function*() {
          const context = yield* startCounters(server)
          yield* store(manyEvents(from, until)).pipe(Effect.provideContext(context))
          yield* rowsAt(Context.get(context, UsageCounters), until, byKey)
          // the last write: everything written is read after it
          const isLast = ({ key, value }: { readonly key: string; readonly value: string }) =>
            key === "checkpoint" && value.includes(`"sequence":${until}}`)
          return yield* everything.pipe(
            Effect.repeat({ until: (stored) => stored.some(isLast) }),
            Effect.andThen(everything),
            Effect.provideContext(onlooker)
          )
        }))
      const before = yield* stateAfter(0, 20)
      const after = yield* stateAfter(20, 40)
      const texts = (state: typeof after) => state.map(({ key, value }) => [key, value])
      assert.lengthOf(after, 9)
      assert.deepStrictEqual(after.map(({ key }) => key), before.map(({ key }) => key))

      // the position to resume from is written last, the records in any order
      for (const mask of [0b00000000, 0b11111111, 0b01010101, 0b00001111, 0b11110000, 0b01101001]) {
        let record = 0
        for (const [index, { bucket, key, value }] of after.entries()) {
          const isWritten = key !== "checkpoint" && (mask >> record++ & 1) === 1
          yield* bucket.put(key, isWritten ? value : before[index]!.value)
        }
        yield* Effect.scoped(Effect.gen(function*() {
          yield* startCounters(server)
          const state = yield* everything.pipe(
            Effect.repeat({
              until: (state) => texts(state).join() === texts(after).join(),
              schedule: Schedule.spaced("20 millis")
            }),
            Effect.provideContext(onlooker)
          )
          assert.deepStrictEqual(texts(state), texts(after))
        }))
      }
    }))

  it.live("by kill -9 loses nothing and counts nothing twice", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const context = yield* usageProcess(server, UsageCounters.layerQuery)
      const counters = Context.get(context, UsageCounters)
      const main = join(import.meta.dirname, "../../fixture/projector/main.ts")
      const rounds = 3
      const each = 200
      for (let round = 0; round < rounds; round++) {
        const child = spawn(process.execPath, [main], {
          env: { ...inherited, NATS_URL: server.url, GATEWAY_PARENT_PIPE: "1" },
          stdio: ["pipe", "ignore", "ignore"]
        })
        const events = manyEvents(round * each, (round + 1) * each)
        // those of the round before again, which only their ids tell from new ones
        const again = manyEvents(Math.max(0, round - 1) * each, (round + 1) * each)
        yield* Effect.all([
          store(events.slice(0, each / 2)).pipe(
            Effect.andThen(storePages([...Array.chunksOf(events, 10), ...Array.chunksOf(again, 30)])),
            Effect.provideContext(context)
          ),
          rowsAt(counters, round * each + 1, byKey)
        ], { concurrency: "unbounded" })
        child.kill("SIGKILL")
        yield* Effect.promise(() => once(child, "exit"))
      }
      const last = yield* startCounters(server)
      const rows = yield* rowsAt(Context.get(last, UsageCounters), rounds * each, byKey)
      assert.strictEqual(total(rows, ({ requests }) => requests), rounds * each)
      assert.strictEqual(total(rows, ({ usage }) => usage.inputTokens), rounds * each * 10)
    }))

  it.live("over an unreadable record reports its delay, and catches up once the record is gone", () =>
    Effect.gen(function*() {
      const context = yield* startCounters(yield* NatsServer.make())
      yield* untilDelay((seconds) => seconds === 0)
      const bucket = yield* openBucket(dailyTally.bucket).pipe(Effect.provideContext(context))
      yield* bucket.put("2020-01.01.key_a", "of a newer gateway")
      yield* store([usageEvent({ id: "1", time: Date.UTC(2020, 0, 1) })]).pipe(Effect.provideContext(context))
      const first = yield* untilDelay((seconds) => seconds > 365 * 24 * 3_600)
      assert.isAbove(yield* untilDelay((seconds) => seconds > first), first)
      yield* bucket.delete("2020-01.01.key_a")
      yield* untilDelay((seconds) => seconds === 0)
      const range = { from: "2020-01-01", to: "2020-01-31", by: "key" } as const
      const rows = yield* Context.get(context, UsageCounters).query(range)
      assert.deepStrictEqual(rows.map(({ requests }) => requests), [1])
    }))

  it.live("without access to events reports its delay, and catches up once it has access", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const context = yield* usageProcess(server, UsageCounters.layerQuery)
      const { connection } = Context.get(context, Nats)
      const { consumers, streams } = yield* Effect.promise(() => jetstreamManager(connection))
      // the stream has no room for the counters' reader
      yield* Effect.promise(async () => {
        await streams.add({ ...eventConfig(events.usage, 1), max_consumers: 1 })
        await consumers.add(events.usage.name, { durable_name: "other", ack_policy: "explicit" })
      })
      yield* store([usageEvent({ id: "1" })]).pipe(Effect.provideContext(context))
      const counters = Context.get(yield* startCounters(server), UsageCounters)
      yield* untilDelay((seconds) => seconds > 0)
      yield* Effect.promise(() => consumers.delete(events.usage.name, "other"))
      yield* untilDelay((seconds) => seconds === 0)
      assert.deepStrictEqual((yield* counters.query(byKey)).map(({ requests }) => requests), [1])
    }))

  it.live("by a defect reports its delay", () =>
    Effect.gen(function*() {
      const teams = Layer.succeed(KeyTeams, () => {
        throw new Error("a defect")
      })
      const context = yield* usageProcess(yield* NatsServer.make(), UsageCounters.layer.pipe(Layer.provide(teams)))
      yield* store([usageEvent({ id: "1" })]).pipe(Effect.provideContext(context))
      const first = yield* untilDelay((seconds) => seconds > 0)
      yield* untilDelay((seconds) => seconds > first)
    }))

  it.live("of NATS itself interrupts only the counting", () =>
    Effect.gen(function*() {
      const server = yield* NatsServer.make()
      const context = yield* startCounters(server)
      const counters = Context.get(context, UsageCounters)
      yield* store(manyEvents(0, 200)).pipe(Effect.provideContext(context))
      yield* Effect.promise(() => server.kill())
      yield* Effect.promise(() => server.restart())
      const other = yield* startCounters(server)
      yield* store(manyEvents(100, 300)).pipe(Effect.provideContext(other))
      const retried = counters.query(byKey).pipe(Effect.retry(Schedule.spaced("50 millis")))
      const rows = yield* retried.pipe(
        Effect.repeat({ until: (rows) => total(rows, ({ requests }) => requests) >= 300 })
      )
      assert.strictEqual(total(rows, ({ requests }) => requests), 300)
    }))
})
