/** The turns in which large bodies are decoded: how long a body waits for its own, and when it stops waiting. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { DecodeTurns } from "../../../services/ingress/request/DecodeTurns.ts"

const bytes = 2 * 1024 * 1024

/** Starts to decode a large body of another tenant, which takes until the returned function is called. */
const occupy = Effect.gen(function*() {
  const { inTurn } = yield* DecodeTurns
  const ended = yield* Deferred.make<void>()
  const fiber = yield* Effect.forkChild(inTurn("key_1", bytes, () => Deferred.await(ended)), { startImmediately: true })
  return Effect.andThen(Deferred.succeed(ended, undefined), Fiber.join(fiber))
})

/** Starts to decode a large body. */
const start = Effect.flatMap(
  DecodeTurns,
  ({ inTurn }) => Effect.forkChild(inTurn("key_2", bytes, () => Effect.succeed("decoded")), { startImmediately: true })
)

describe("a large body", () => {
  it.effect("leaves as soon as its client does, and leaves the turn to others", () =>
    Effect.gen(function*() {
      const end = yield* occupy
      const left = yield* start
      const other = yield* start
      left.interruptUnsafe()
      // no time passes
      yield* TestClock.adjust(0)
      assert.isDefined(left.pollUnsafe())
      assert.isUndefined(other.pollUnsafe())
      yield* end
      assert.strictEqual(yield* Fiber.join(other), "decoded")
      assert.strictEqual(yield* Fiber.join(yield* start), "decoded")
    }).pipe(Effect.provide(DecodeTurns.layer)))

  it.effect("returns its turn if its client leaves while it is decoded", () =>
    Effect.gen(function*() {
      const { inTurn } = yield* DecodeTurns
      const decoded = yield* Effect.forkChild(inTurn("key_1", bytes, () => Effect.never), { startImmediately: true })
      const other = yield* start
      yield* Fiber.interrupt(decoded)
      assert.strictEqual(yield* Fiber.join(other), "decoded")
    }).pipe(Effect.provide(DecodeTurns.layer)))

  it.effect("waits for its turn for ten seconds, and may take longer to decode", () =>
    Effect.gen(function*() {
      const end = yield* occupy
      const late = yield* start
      yield* TestClock.adjust("9 seconds")
      assert.isUndefined(late.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Effect.flip(Fiber.join(late)))._tag, "Unavailable")
      yield* end
      assert.strictEqual(yield* Fiber.join(yield* start), "decoded")
    }).pipe(Effect.provide(DecodeTurns.layer)))
})
