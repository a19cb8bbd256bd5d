/** Listeners hear of the drain after the time for load balancers, however late they are added. */
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Drain, onRelease } from "../../../shared/process/Drain.ts"

it.effect("listeners are called when load balancers had the time to notice, and late ones immediately", () =>
  Effect.gen(function*() {
    const released = yield* Scope.make()
    const drain = yield* Drain
    yield* Layer.buildWithScope(onRelease, released)
    const calls: Array<string> = []
    drain.onStop(() => calls.push("early"))
    drain.onStop(() => calls.push("removed"))()
    yield* Effect.forkChild(Scope.close(released, Exit.void))
    yield* TestClock.adjust(999)
    assert.isTrue(drain.isDraining())
    assert.deepStrictEqual(calls, [])
    yield* TestClock.adjust(1)
    assert.deepStrictEqual(calls, ["early"])
    drain.onStop(() => calls.push("late"))
    assert.deepStrictEqual(calls, ["early", "late"])
  }).pipe(
    Effect.provide(Drain.layer),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({ DRAIN_DELAY_MS: "1000" }))
  ))
