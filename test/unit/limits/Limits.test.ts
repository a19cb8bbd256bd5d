/** A limit holds over all replicas together, in every window, and can be used up completely. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Random } from "effect"
import { TestClock } from "effect/testing"
import type { Limit, Taken, UnitsMissing } from "../../../shared/bounds/Limit.ts"
import { Log, type Replica, replica, TestStore } from "../../fixture/calls/Replicas.ts"
import { collectGarbage } from "../../fixture/general/Garbage.ts"

const minute = 60_000
/** A unit counts for up to this long after its minute, including the time to take it. */
const slackMs = 2_000
const perMinute = (limit: number): Limit => ({ key: "requests", limit, windowMs: minute })
const concurrent = (limit: number): Limit => ({ key: "calls", limit, windowMs: 0 })

const replicas = (store: TestStore, count: number) =>
  Effect.forEach(Array.from({ length: count }), () => replica(store))

/** Takes units, waiting for up to `withinMs` milliseconds. */
const takeWithin = (
  { limits }: Replica,
  limit: Limit,
  withinMs: number,
  units = 1
): Effect.Effect<Taken, UnitsMissing> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => limits.take(limit, units, now + withinMs))

/** The result after one second. */
const inOneSecond = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust("1 second")
    return yield* Fiber.join(fiber)
  })

const fourTimes = <A, E>(effect: Effect.Effect<A, E>) => Effect.forEach([1, 2, 3, 4], () => effect)

/** `askers` fibers per replica that take again and again and wait as long as needed. */
const takeInLoop = (log: Log, all: ReadonlyArray<Replica>, limit: Limit, askers: number) =>
  Effect.forEach(
    all.flatMap((one) => Array.from({ length: askers }, () => one)),
    (one) => Effect.forever(Effect.andThen(takeWithin(one, limit, 10 * minute), log.note)),
    { concurrency: "unbounded" }
  ).pipe(Effect.ignore, Effect.forkChild)

/** Random requests, `aMinute` over all replicas, each rejected if there is no room within 100 ms. */
const takeAtRandom = (log: Log, all: ReadonlyArray<Replica>, limit: Limit, aMinute: number) =>
  Effect.forever(Effect.gen(function*() {
    yield* Effect.sleep(-Math.log(1 - (yield* Random.next)) * minute / aMinute)
    const one = all[yield* Random.nextIntBetween(0, all.length - 1)]!
    yield* takeWithin(one, limit, 100).pipe(Effect.andThen(log.note), Effect.ignore, Effect.forkChild)
  })).pipe(Effect.forkChild)

describe("a limit per minute", () => {
  const waiting = [[60, 4, 30], [60, 1, 100], [100, 4, 50], [3, 4, 2], [1, 4, 3], [600, 8, 50]] as const
  it.effect.each(waiting)(
    "holds and is used up if every request waits: %s over %s replicas",
    ([limit, count, askers]) =>
      Effect.gen(function*() {
        const log = new Log()
        yield* takeInLoop(log, yield* replicas(yield* TestStore.make(), count), perMinute(limit), askers)
        yield* TestClock.adjust(3 * minute)
        assert.isAtMost(log.windows(minute).most, limit)
        assert.isAtLeast(log.windows(minute + slackMs, 3 * minute).least, limit)
        assert.isAtLeast(log.at.length, 3 * limit)
      })
  )

  const rejected = [[100, 4, 300], [60, 4, 180], [500, 4, 1_500], [10, 4, 50]] as const
  it.effect.each(rejected)(
    "holds and is used up if excess requests are rejected: %s over %s replicas of %s",
    ([limit, count, aMinute]) =>
      Effect.gen(function*() {
        const log = new Log()
        yield* takeAtRandom(log, yield* replicas(yield* TestStore.make(), count), perMinute(limit), aMinute)
        yield* TestClock.adjust(3 * minute)
        assert.isAtMost(log.windows(minute).most, limit)
        assert.isAtLeast(log.at.length, 3 * limit * 0.95)
      })
  )

  it.effect("takes no memory once it is not in use and its units cannot be settled any more", () =>
    Effect.gen(function*() {
      const one = yield* replica(yield* TestStore.make())
      const unsettled: Array<Taken> = []
      // a function of its own: a generator would keep the limit alive
      const use = (key: string, keep: (taken: Taken) => void) => {
        const limit = { ...perMinute(60), key }
        return Effect.as(Effect.map(inOneSecond(takeWithin(one, limit, 1_000)), keep), new WeakRef(limit))
      }
      const ended = yield* use("ended", () => undefined)
      const running = yield* use("running", (taken) => unsettled.push(taken))
      yield* TestClock.adjust("5 minutes")
      yield* Effect.promise(collectGarbage)
      assert.isUndefined(ended.deref())
      assert.isDefined(running.deref())
      // its use counts, although it comes so late
      unsettled[0]!.settle(50)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(one.limits.state({ ...perMinute(60), key: "running" }).remaining, 60 - 49)
    }))

  it.effect("needs few writes if usage is far below it", () =>
    Effect.gen(function*() {
      const store = yield* TestStore.make()
      const log = new Log()
      yield* takeAtRandom(log, yield* replicas(store, 4), perMinute(10_000), 1_000)
      yield* TestClock.adjust(2 * minute)
      assert.isAtLeast(log.at.length, 1_800)
      assert.isAtMost(store.writes, log.at.length / 20)
    }))

  it.effect("lets one replica use what another did not", () =>
    Effect.gen(function*() {
      const [one, other] = yield* replicas(yield* TestStore.make(), 2)
      const log = new Log()
      yield* inOneSecond(takeWithin(one!, perMinute(60), 1_000))
      // unused units of a lease return to the ledger
      yield* TestClock.adjust("11 seconds")
      yield* takeInLoop(log, [other!], perMinute(60), 60)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(log.at.length, 59)
    }))

  it.effect("holds if a replica dies with units on lease, which return a window later", () =>
    Effect.gen(function*() {
      const [dying, other] = yield* replicas(yield* TestStore.make(), 2)
      const log = new Log()
      yield* inOneSecond(
        Effect.forEach([1, 2, 3], () => Effect.andThen(takeWithin(dying!, perMinute(60), 1_000), log.note))
      )
      dying!.cutOff()
      yield* takeInLoop(log, [other!], perMinute(60), 60)
      yield* TestClock.adjust("1 second")
      assert.isAtLeast(log.at.length, 57)
      yield* TestClock.adjust("3 minutes")
      assert.isAtMost(log.windows(minute).most, 60)
      assert.isAtLeast(log.windows(minute, 182_000).most, 60)
    }))

  it.effect("is never exceeded while the ledger is unreachable, and no request waits beyond its deadline", () =>
    Effect.gen(function*() {
      const store = yield* TestStore.make()
      const all = yield* replicas(store, 4)
      const log = new Log()
      yield* takeAtRandom(log, all, perMinute(60), 600)
      yield* TestClock.adjust("1 second")
      store.isAway = true
      yield* TestClock.adjust("2 minutes")
      const last = Math.max(...log.at)
      // units on lease remain usable until the lease expires
      assert.isBelow(last, 12_000)
      const refused = yield* Effect.forkChild(Effect.exit(takeWithin(all[0]!, perMinute(60), 5_000)))
      yield* TestClock.adjust("5 seconds")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(refused)))
      store.isAway = false
      yield* TestClock.adjust("3 minutes")
      assert.isAtMost(log.windows(minute).most, 60)
      assert.isAtLeast(log.windows(minute, 5 * minute + 6_000).most, 57)
    }))

  it.effect("is not written repeatedly while the ledger is unreachable: reads come first", () =>
    Effect.gen(function*() {
      const store = yield* TestStore.make()
      const log = new Log()
      yield* takeAtRandom(log, yield* replicas(store, 1), perMinute(60), 600)
      yield* TestClock.adjust("5 seconds")
      assert.isAbove(store.attempts, 1)
      store.isAway = true
      const { attempts } = store
      yield* TestClock.adjust("1 hour")
      assert.isAtMost(store.attempts - attempts, 1)
      store.isAway = false
      yield* TestClock.adjust("2 minutes")
      assert.isAtMost(log.windows(minute).most, 60)
      assert.isAtLeast(log.windows(minute, 60 * minute).most, 50)
    }))

  it.effect("is never exceeded if the outcome of writes is unknown", () =>
    Effect.gen(function*() {
      const store = yield* TestStore.make()
      const log = new Log()
      yield* takeAtRandom(log, yield* replicas(store, 4), perMinute(60), 600)
      for (let round = 0; round < 60; round++) {
        yield* TestClock.adjust("4 seconds")
        store.losesAnswers = true
        yield* TestClock.adjust("1 second")
        store.losesAnswers = false
      }
      assert.isAtMost(log.windows(minute).most, 60)
      assert.isAtLeast(log.at.length, 5 * 60 * 0.8)
    }))

  it.effect("is never exceeded even then if requests use less than they reserved", () =>
    Effect.gen(function*() {
      const store = yield* TestStore.make()
      const all = yield* replicas(store, 3)
      const log = new Log()
      const tokens: Limit = { key: "tokens", limit: 3_000, windowMs: minute }
      yield* Effect.forEach(
        all.flatMap((one) => Array.from({ length: 5 }, () => one)),
        (one) =>
          Effect.forever(Effect.gen(function*() {
            const taken = yield* takeWithin(one, tokens, 10 * minute, 100)
            yield* log.note
            yield* Effect.sleep("200 millis")
            taken.settle(30)
          })),
        { concurrency: "unbounded" }
      ).pipe(Effect.ignore, Effect.forkChild)
      for (let round = 0; round < 40; round++) {
        yield* TestClock.adjust("4 seconds")
        store.losesAnswers = true
        yield* TestClock.adjust("1 second")
        store.losesAnswers = false
      }
      assert.isAtMost(log.windows(minute).most, 100)
      assert.isAtLeast(log.at.length, 200)
    }))

  it.effect("rejects a request at once if its turn comes too late, with the time until its turn", () =>
    Effect.gen(function*() {
      const [one, other] = yield* replicas(yield* TestStore.make(), 2)
      yield* inOneSecond(Effect.forEach(Array.from({ length: 60 }), () => takeWithin(one!, perMinute(60), 1_000)))
      yield* TestClock.adjust("19 seconds")
      for (const each of [one!, other!]) {
        const { retryAfterMs } = yield* inOneSecond(Effect.flip(takeWithin(each, perMinute(60), 30_000)))
        assert.closeTo(retryAfterMs, 41_000, 1_000)
      }
      const waiting = yield* Effect.forkChild(takeWithin(other!, perMinute(60), 60_000))
      yield* TestClock.adjust("41 seconds")
      assert.isDefined(waiting.pollUnsafe())
    }))

  it.effect("counts actual usage instead of the reserved amount", () =>
    Effect.gen(function*() {
      const [one, other] = yield* replicas(yield* TestStore.make(), 2)
      const tokens: Limit = { key: "tokens", limit: 10_000, windowMs: minute }
      const large = yield* inOneSecond(takeWithin(one!, tokens, 1_000, 9_000))
      assert.isTrue(Exit.isFailure(yield* inOneSecond(Effect.exit(takeWithin(other!, tokens, 1_000, 9_000)))))
      large.settle(100)
      yield* TestClock.adjust("12 seconds")
      const second = yield* inOneSecond(takeWithin(other!, tokens, 1_000, 9_000))
      second.settle(12_000)
      yield* TestClock.adjust("2 seconds")
      // in debt until the window has passed
      const third = yield* Effect.forkChild(takeWithin(one!, tokens, 2 * minute, 9_000))
      yield* TestClock.adjust("55 seconds")
      assert.isUndefined(third.pollUnsafe())
      yield* TestClock.adjust("10 seconds")
      assert.isDefined(third.pollUnsafe())
    }))

  it.effect("counts usage beyond the reserved amount at every replica, too", () =>
    Effect.gen(function*() {
      const [one, other] = yield* replicas(yield* TestStore.make(), 2)
      const tokens: Limit = { key: "tokens", limit: 10_000, windowMs: minute }
      const request = yield* inOneSecond(takeWithin(one!, tokens, 1_000, 1_000))
      request.settle(9_000)
      yield* TestClock.adjust("2 seconds")
      assert.isTrue(Exit.isFailure(yield* inOneSecond(Effect.exit(takeWithin(other!, tokens, 1_000, 5_000)))))
    }))

  it.effect("admits a small request although a larger one has just been rejected", () =>
    Effect.gen(function*() {
      const [one] = yield* replicas(yield* TestStore.make(), 1)
      const tokens = { ...perMinute(1_000), key: "tokens" }
      yield* inOneSecond(takeWithin(one!, tokens, 1_000, 800))
      assert.isTrue(Exit.isFailure(yield* inOneSecond(Effect.exit(takeWithin(one!, tokens, 500, 500)))))
      yield* inOneSecond(takeWithin(one!, tokens, 500, 200))
    }))

  it.effect("admits a small request although a larger one ahead of it is rejected", () =>
    Effect.gen(function*() {
      const [one] = yield* replicas(yield* TestStore.make(), 1)
      const tokens = { ...perMinute(1_000), key: "tokens" }
      yield* inOneSecond(takeWithin(one!, tokens, 1_000, 800))
      const large = yield* Effect.forkChild(Effect.exit(takeWithin(one!, tokens, 1_000, 500)))
      yield* Effect.yieldNow
      yield* inOneSecond(takeWithin(one!, tokens, 1_000, 100))
      assert.isTrue(Exit.isFailure(yield* Fiber.join(large)))
    }))

  it.effect("admits a request larger than the limit, alone", () =>
    Effect.gen(function*() {
      const [one] = yield* replicas(yield* TestStore.make(), 1)
      yield* inOneSecond(takeWithin(one!, perMinute(60), 1_000, 1_000))
      assert.isTrue(Exit.isFailure(yield* inOneSecond(Effect.exit(takeWithin(one!, perMinute(60), 1_000)))))
    }))

  it.effect("follows an edit of the catalogue", () =>
    Effect.gen(function*() {
      const all = yield* replicas(yield* TestStore.make(), 2)
      const log = new Log()
      yield* takeInLoop(log, all, perMinute(10), 20)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(log.at.length, 10)
      yield* takeInLoop(log, all, perMinute(30), 20)
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(log.at.length, 30)
    }))
})

/** Calls of random length in a loop, `callers` per replica. */
class Calls {
  running = 0
  most = 0
  readonly done = new Map<Replica, number>()

  readonly make = (all: ReadonlyArray<Replica>, limit: Limit, callers: number, meanMs: number) =>
    Effect.forEach(
      all.flatMap((one) => Array.from({ length: callers }, () => one)),
      (one) => Effect.forever(this.one(one, limit, meanMs)),
      { concurrency: "unbounded" }
    ).pipe(Effect.forkChild)

  readonly one = (one: Replica, limit: Limit, meanMs: number) =>
    Effect.acquireUseRelease(
      Effect.orDie(takeWithin(one, limit, 60 * minute)),
      () =>
        Effect.gen({ self: this }, function*() {
          this.running++
          this.most = Math.max(this.most, this.running)
          yield* Effect.sleep(-Math.log(1 - (yield* Random.next)) * meanMs)
          this.done.set(one, (this.done.get(one) ?? 0) + 1)
        }),
      (taken) =>
        Effect.sync(() => {
          this.running--
          taken.settle(0)
        })
    )
}

describe("the state of a limit", () => {
  it.effect("is known at every replica that uses it: its own usage at once, other replicas' with their next entry", () =>
    Effect.gen(function*() {
      const [one, other] = yield* replicas(yield* TestStore.make(), 2)
      const limit = perMinute(100)
      assert.deepStrictEqual(one!.limits.state(limit), { remaining: 100, resetMs: 0 })
      const taken = yield* inOneSecond(takeWithin(one!, limit, 1_000, 30))
      assert.strictEqual(one!.limits.state(limit).remaining, 70)
      assert.closeTo(one!.limits.state(limit).resetMs, minute - 1_000, 50)
      yield* TestClock.adjust("15 seconds")
      yield* inOneSecond(takeWithin(other!, limit, 1_000, 20))
      assert.strictEqual(other!.limits.state(limit).remaining, 50)
      // the request used less than it reserved
      taken.settle(10)
      assert.strictEqual(one!.limits.state(limit).remaining, 90)
      yield* inOneSecond(takeWithin(one!, limit, 1_000, 60))
      // the other replica still holds a few units
      assert.closeTo(one!.limits.state(limit).remaining, 10, 5)
      yield* TestClock.adjust(2 * minute)
      assert.deepStrictEqual(one!.limits.state(limit), { remaining: 100, resetMs: 0 })
    }))
})

describe("a limit of concurrent calls", () => {
  const cases = [[64, 4, 40, 2_000], [4, 4, 5, 1_000], [1, 3, 3, 500], [2, 8, 4, 300]] as const
  it.effect.each(cases)(
    "holds, is used up and is fair: %s over %s replicas",
    ([limit, count, callers, meanMs]) =>
      Effect.gen(function*() {
        const all = yield* replicas(yield* TestStore.make(), count)
        const calls = new Calls()
        yield* calls.make(all, concurrent(limit), callers, meanMs)
        yield* TestClock.adjust("3 minutes")
        assert.isAtMost(calls.most, limit)
        const done = all.map((one) => calls.done.get(one) ?? 0)
        const total = done.reduce((sum, each) => sum + each, 0)
        // with less than one slot per replica, passing a slot on takes a moment
        assert.isAtLeast(total, limit * 180_000 / meanMs * (limit < count ? 0.6 : 0.9))
        assert.isAtLeast(Math.min(...done), total / count * 0.6)
      })
  )

  it.effect("is available at every replica even if it is small and all request it at once", () =>
    Effect.gen(function*() {
      const [last, ...others] = yield* replicas(yield* TestStore.make(), 4)
      const taken = yield* inOneSecond(
        Effect.forEach(others, (one) => takeWithin(one, concurrent(3), 500), { concurrency: "unbounded" })
      )
      yield* inOneSecond(Effect.flip(takeWithin(last!, concurrent(3), 500)))
      taken[0]?.settle(0)
      yield* inOneSecond(takeWithin(last!, concurrent(3), 1_000))
    }))

  it.effect("returns at once from a replica that shuts down, and after a while from a dead replica", () =>
    Effect.gen(function*() {
      const [ending, dying, other] = yield* replicas(yield* TestStore.make(), 3)
      yield* inOneSecond(fourTimes(takeWithin(ending!, concurrent(8), 1_000)))
      yield* inOneSecond(fourTimes(takeWithin(dying!, concurrent(8), 1_000)))
      yield* inOneSecond(Effect.flip(takeWithin(other!, concurrent(8), 500)))
      yield* Effect.forkChild(ending!.stop)
      yield* inOneSecond(fourTimes(takeWithin(other!, concurrent(8), 1_000)))
      yield* inOneSecond(Effect.flip(takeWithin(other!, concurrent(8), 500)))
      dying!.cutOff()
      yield* TestClock.adjust("16 seconds")
      yield* inOneSecond(fourTimes(takeWithin(other!, concurrent(8), 1_000)))
    }))

  it.effect("admits nothing at a disconnected replica after its share may have been given to others", () =>
    Effect.gen(function*() {
      const [one, other] = yield* replicas(yield* TestStore.make(), 2)
      const [first] = yield* inOneSecond(fourTimes(takeWithin(one!, concurrent(4), 1_000)))
      one!.cutOff()
      yield* TestClock.adjust("16 seconds")
      yield* inOneSecond(fourTimes(takeWithin(other!, concurrent(4), 1_000)))
      first!.settle(0)
      yield* inOneSecond(Effect.flip(takeWithin(one!, concurrent(4), 500)))
    }))

  it.effect("keeps nothing of interrupted requests", () =>
    Effect.gen(function*() {
      const [one] = yield* replicas(yield* TestStore.make(), 1)
      const first = yield* inOneSecond(takeWithin(one!, concurrent(1), 1_000))
      for (const afterMs of [0, 1, 5, 10, 100, 1_000]) {
        const waiting = yield* Effect.forkChild(Effect.uninterruptible(takeWithin(one!, concurrent(1), minute)))
        yield* TestClock.adjust(afterMs)
        yield* Fiber.interrupt(waiting)
      }
      first.settle(0)
      for (let round = 0; round < 10; round++) (yield* inOneSecond(takeWithin(one!, concurrent(1), 1_000))).settle(0)
    }))

  it.effect("holds if a request ends after its replica has returned everything", () =>
    Effect.gen(function*() {
      const [closing, one, other] = yield* replicas(yield* TestStore.make(), 3)
      const taken = yield* inOneSecond(takeWithin(closing!, concurrent(1), 1_000))
      const stopping = yield* Effect.forkChild(closing!.stop)
      yield* TestClock.adjust(1)
      taken.settle(0)
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(stopping)
      yield* inOneSecond(takeWithin(one!, concurrent(1), 1_000))
      assert.isTrue(Exit.isFailure(yield* inOneSecond(Effect.exit(takeWithin(other!, concurrent(1), 500)))))
    }))

  it.effect("bounds the number of waiting requests", () =>
    Effect.gen(function*() {
      const [one] = yield* replicas(yield* TestStore.make(), 1)
      yield* inOneSecond(takeWithin(one!, concurrent(1), 1_000))
      yield* Effect.forEach(
        Array.from({ length: 1_000 }),
        () => Effect.forkChild(Effect.exit(takeWithin(one!, concurrent(1), minute)))
      )
      yield* TestClock.adjust(1)
      assert.strictEqual((yield* Effect.flip(takeWithin(one!, concurrent(1), minute)))._tag, "LimitReached")
    }))
})

describe("a limit that is consumed, as a budget is", () => {
  const rest = (limit: number): Limit => ({ key: "budget", limit, windowMs: 0, isConsumed: true })

  it.effect("does not give returned units again, because its limit is lower by them", () =>
    Effect.gen(function*() {
      const [one, other] = yield* replicas(yield* TestStore.make(), 2)
      if (one === undefined || other === undefined) return assert.fail("no replicas")
      const taken = yield* inOneSecond(takeWithin(one, rest(100), 500, 90))
      // the 90 units are counted: 10 are left, and 90 units return
      taken.settle(0)
      const last = yield* inOneSecond(takeWithin(one, rest(10), 500, 90))
      const refused = yield* inOneSecond(Effect.exit(takeWithin(one, rest(10), 500)))
      assert.isTrue(Exit.isFailure(refused))
      assert.isTrue(Exit.isFailure(yield* inOneSecond(Effect.exit(takeWithin(other, rest(10), 500)))))
      last.settle(0)
      yield* TestClock.adjust("1 second")
      yield* inOneSecond(takeWithin(other, rest(10), 500, 10))
    }))

  it.effect("counts costs beyond the reserved amount at every replica", () =>
    Effect.gen(function*() {
      const [one, other] = yield* replicas(yield* TestStore.make(), 2)
      const request = yield* inOneSecond(takeWithin(one!, rest(100), 500, 10))
      request.settle(80)
      yield* TestClock.adjust("1 second")
      assert.isTrue(Exit.isFailure(yield* inOneSecond(Effect.exit(takeWithin(other!, rest(100), 500, 50)))))
    }))

  it.effect("serves a request that needs all of it while others wait, too", () =>
    Effect.gen(function*() {
      const all = yield* replicas(yield* TestStore.make(), 4)
      const served: Array<number> = []
      const ask = (one: Replica, index: number) =>
        Effect.forever(Effect.gen(function*() {
          const taken = yield* takeWithin(one, rest(100), minute, 100)
          served.push(index)
          yield* Effect.sleep(100)
          taken.settle(0)
        })).pipe(Effect.ignore, Effect.forkChild)
      yield* Effect.forEach(all, ask)
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(new Set(served).size, 4)
    }))
})
