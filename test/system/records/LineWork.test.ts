/** A worker performs a line of a batch, with the log on a real server. */
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Schedule } from "effect"
import { lineId } from "../../../shared/batches/lines/Line.ts"
import * as LineLog from "../../../shared/batches/lines/LineLog.ts"
import { lines } from "../../../shared/batches/lines/LineWork.ts"
import type { Spend } from "../../../shared/limits/Holds.ts"
import { Nats } from "../../../shared/nats/Nats.ts"
import { testSecret } from "../../fixture/gateway/Gateway.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"
import { pulled, served } from "../../unit/worker/Served.ts"

const place = { owner: { id: "key_1", salt: "salt" }, batch: `batch_${"0".repeat(32)}`, line: 7 }
const usage = { inputTokens: 3, outputTokens: 8 }

/** A worker for a model that may be called twice. `onHold` runs when the worker has its units, right before it takes the line. */
const start = Effect.fnUntraced(
  function*(onHold: (log: LineLog.LineLog) => Effect.Effect<unknown> = () => Effect.void) {
    const { url } = yield* NatsServer.make()
    const settings = ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: url, GATEWAY_SECRET: testSecret }))
    const patience = Schedule.recurs(3)
    const nats = yield* Layer.build(Nats.layer).pipe(Effect.provide(settings))
    const log = yield* LineLog.open(patience).pipe(Effect.provideContext(nats), Effect.provide(settings))
    const { metering: { cost, ...metering } } = served()
    const events: Array<string> = []
    let calls = 0
    const run = yield* lines.open({
      worker: "worker",
      patience,
      holds: {
        around: <A, E>(_: unknown, use: (spend: Spend) => Effect.Effect<A, E>) =>
          Effect.andThen(onHold(log), use(() => undefined))
      },
      dependencies: {
        ...metering,
        cost,
        log: {
          write: (_, { id }, onStored) => {
            events.push(id)
            onStored()
          }
        },
        performer: {
          isIdempotent: () => true,
          perform: (_, reply) =>
            Effect.sync(() => {
              calls++
              reply.start({ status: 200, contentType: "application/json", headers: {} })
              return usage
            }),
          cost,
          costInBatch: cost
        }
      }
    }).pipe(Effect.provideContext(nats), Effect.provide(settings))
    const job = { ...pulled, id: lineId(place), owner: place.owner }
    return { log, job, run, events, calls: () => calls }
  }
)

describe("a line", () => {
  it.live("is not performed if its batch ends while the worker takes it", () =>
    Effect.gen(function*() {
      for (const ends of [false, true]) {
        const close = (log: LineLog.LineLog) => ends ? Effect.orDie(log.close(place.owner, place.batch)) : Effect.void
        const { calls, job, log, run } = yield* start(close)
        const body = yield* log.sealJob(place, { customId: "a", tokens: 1 }, Buffer.from("{}"))
        assert.strictEqual(yield* run({ ...job, body }), "done")
        assert.strictEqual(calls(), ends ? 0 : 1)
      }
    }))

  it.live("is metered again by a later delivery of its job, and not by one of a copy", () =>
    Effect.gen(function*() {
      const { events, job, log, run } = yield* start()
      const ended = { worker: "lost", job: job.publishedAt, at: 1, provider: "paid", model: "theirs", usage }
      const result = { about: { customId: "a", status: 200 }, bytes: Buffer.from("{}") }
      yield* log.end(place, { kind: "completed", ...ended }, result, 0)
      assert.strictEqual(yield* run({ ...job, delivery: 2, publishedAt: job.publishedAt + 1 }), "done")
      assert.deepStrictEqual(events, [])
      assert.strictEqual(yield* run({ ...job, delivery: 2 }), "done")
      assert.deepStrictEqual(events, [lineId(place)])
    }))
})
