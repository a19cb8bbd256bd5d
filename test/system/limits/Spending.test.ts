/** Keys' spending of this month at ingress. */
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { openBucket } from "../../../shared/nats/KeyValue.ts"
import { layerBoth } from "../../../shared/nats/Nats.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { monthlyTally } from "../../../shared/usage/Tally.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { NatsServer } from "../../fixture/nats/NatsServer.ts"

/** Waits until the copy has followed. The watch runs on the real clock. */
const until = (holds: () => boolean) => Effect.promise(() => eventually(holds, (isSo) => isSo))

it.effect("spending is known at once and as it changes, and counts until the month ends", () =>
  Effect.gen(function*() {
    const server = yield* NatsServer.make()
    const process = Layer.build(Layer.fresh(Spending.layer.pipe(Layer.provideMerge(layerBoth)))).pipe(
      Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ NATS_URL: server.url })))
    )
    yield* TestClock.setTime(Date.UTC(2026, 10, 30, 23, 59))
    const early = yield* process
    const bucket = yield* openBucket(monthlyTally.bucket).pipe(Effect.provideContext(early))
    const write = (key: string, value: number) =>
      bucket.put(key, monthlyTally.encode({ upTo: { stream: "x", sequence: 1 }, value }))
    yield* write("2026-10.key_a", 100)
    yield* write("2026-11.key_a", 5)
    yield* write("2026-11.key_b", 7)

    const late = Context.get(yield* process, Spending)
    assert.deepStrictEqual(["key_a", "key_b", "key_c"].map(late.of), [5, 7, 0])
    assert.strictEqual(late.resetMs(), 60_000)

    yield* write("2026-11.key_a", 6)
    yield* write("2026-12.key_a", 1)
    const spending = Context.get(early, Spending)
    yield* until(() => spending.of("key_a") === 6 && late.of("key_a") === 6)

    yield* TestClock.adjust(60_000)
    yield* until(() => spending.of("key_a") === 1)
    assert.deepStrictEqual(["key_a", "key_b"].map(late.of), [1, 0])
    assert.strictEqual(late.resetMs(), 31 * 24 * 3_600_000)
  }))
