/** A limit counts as reached only if its ledger says so: while the ledger cannot be read or written, that is unknown. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Limit } from "../../../shared/bounds/Limit.ts"
import { type Replica, replica, TestStore } from "../../fixture/calls/Replicas.ts"

/** Every kind of limit, each of 40 units. */
const limits: ReadonlyArray<readonly [string, Limit]> = [
  ["requests or tokens per minute", { key: "requests", limit: 40, windowMs: 60_000 }],
  ["concurrent requests", { key: "calls", limit: 40, windowMs: 0 }],
  ["a budget", { key: "budget", limit: 40, windowMs: 0, isConsumed: true }]
]

const take = ({ limits }: Replica, limit: Limit, units = 1) =>
  Effect.gen(function*() {
    const until = (yield* Clock.currentTimeMillis) + 1_000
    const fiber = yield* Effect.forkChild(Effect.exit(limits.take(limit, units, until)))
    yield* TestClock.adjust("1 second")
    return yield* Fiber.join(fiber)
  })

/** What a request gets: `taken`, or the reason. */
const outcomeOf = (exit: Effect.Success<ReturnType<typeof take>>): string =>
  Exit.isSuccess(exit) ?
    "taken" :
    Exit.findErrorOption(exit).pipe((error) => error._tag === "Some" ? error.value._tag : "died")

interface Row {
  readonly when: string
  /** Prepares the store and the replica that is asked. */
  readonly given: (store: TestStore, one: Replica, limit: Limit) => Effect.Effect<unknown>
  /** The right value: what the ledger says, and `LimitUnknown` where it says nothing. */
  readonly expected: "taken" | "LimitReached" | "LimitUnknown"
}

const useAllAtAnother = (store: TestStore, limit: Limit) =>
  Effect.gen(function*() {
    assert.strictEqual(outcomeOf(yield* take(yield* replica(store), limit, 40)), "taken")
  })

const rows: ReadonlyArray<Row> = [
  { when: "the ledger has units", given: () => Effect.void, expected: "taken" },
  {
    when: "the ledger says that all units are taken",
    given: (store, _, limit) => useAllAtAnother(store, limit),
    expected: "LimitReached"
  },
  {
    when: "the store is away",
    given: (store) => Effect.sync(() => store.isAway = true),
    expected: "LimitUnknown"
  },
  {
    when: "the store is full, so that it can be read but not written",
    given: (store) => Effect.sync(() => store.isFull = true),
    expected: "LimitUnknown"
  },
  {
    when: "the store never answers",
    given: (store) => Effect.sync(() => store.isSilent = true),
    expected: "LimitUnknown"
  },
  {
    when: "the store loses its answers",
    given: (store) => Effect.sync(() => store.losesAnswers = true),
    expected: "LimitUnknown"
  },
  {
    when: "the store is full, and its ledger says that all units are taken",
    given: (store, _, limit) => Effect.andThen(useAllAtAnother(store, limit), Effect.sync(() => store.isFull = true)),
    expected: "LimitReached"
  },
  {
    when: "the store is away since the ledger was found empty",
    given: (store, one, limit) =>
      Effect.gen(function*() {
        yield* useAllAtAnother(store, limit)
        yield* take(one, limit)
        store.isAway = true
        yield* TestClock.adjust("5 seconds")
      }),
    expected: "LimitUnknown"
  },
  {
    when: "the store is away since the lease ended",
    given: (store, one, limit) =>
      Effect.gen(function*() {
        yield* take(one, limit)
        store.isAway = true
        yield* TestClock.adjust("1 minute")
      }),
    expected: "LimitUnknown"
  },
  {
    when: "the store was away and is back",
    given: (store, one, limit) =>
      Effect.gen(function*() {
        store.isAway = true
        yield* take(one, limit)
        store.isAway = false
        yield* TestClock.adjust("5 seconds")
      }),
    expected: "taken"
  }
]

describe.each(limits)("%s", (_, limit) => {
  it.effect.each(rows)("$when: $expected", ({ expected, given }) =>
    Effect.gen(function*() {
      const store = yield* TestStore.make()
      const one = yield* replica(store)
      yield* given(store, one, limit)
      assert.strictEqual(outcomeOf(yield* take(one, limit)), expected)
    }))

  it.effect("of requests beyond those that may wait says the same", () =>
    Effect.gen(function*() {
      const store = yield* TestStore.make()
      store.isAway = true
      const one = yield* replica(store)
      const until = (yield* Clock.currentTimeMillis) + 1_000
      const waiting = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 1_001 }), () => Effect.exit(one.limits.take(limit, 1, until)), {
          concurrency: "unbounded"
        })
      )
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(new Set((yield* Fiber.join(waiting)).map(outcomeOf)), new Set(["LimitUnknown"]))
    }))
})

it.effect("leased units are used before that", () =>
  Effect.gen(function*() {
    const store = yield* TestStore.make()
    const one = yield* replica(store)
    const limit: Limit = { key: "requests", limit: 400, windowMs: 60_000 }
    assert.strictEqual(outcomeOf(yield* take(one, limit)), "taken")
    store.isAway = true
    let taken = 0
    while (one.limits.tryTake(limit, 1) !== undefined) taken++
    // a twentieth of the limit is leased ahead
    assert.isAtLeast(taken, 15)
    assert.strictEqual(outcomeOf(yield* take(one, limit)), "LimitUnknown")
  }))
