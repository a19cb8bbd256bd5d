/** Several replicas of a service over one ledger, in one process and on the test's clock. */
import { Clock, Context, Effect, Exit, Layer, Option, Random, Scope } from "effect"
import { JetStreamFailed } from "../../shared/bus/provision/JobStreams.ts"
import { Limits } from "../../shared/limits/Limits.ts"
import { LimitStore } from "../../shared/limits/LimitStore.ts"

/** A store that takes a while to answer, and can be cut off. */
export class TestStore {
  /** What its questions cost, in milliseconds: at least so much, at most twice as much, there and back. */
  readonly #latencyMs: number
  readonly #store: LimitStore["Service"]
  isAway = false
  /** It does as it is asked, but its answers are lost. */
  isDeaf = false
  writes = 0
  /** Writes that it was asked for, whether or not that reached it. */
  attempts = 0

  constructor(store: LimitStore["Service"], latencyMs: number) {
    this.#store = store
    this.#latencyMs = latencyMs
  }

  static readonly make = (latencyMs = 2): Effect.Effect<TestStore, never, Scope.Scope> =>
    Effect.map(
      Layer.build(LimitStore.layerMemory),
      (built) => new TestStore(Context.get(built, LimitStore), latencyMs)
    )

  /** The same store as one replica sees it. */
  forOne(): TestStore {
    return new TestStore(this.service, 0)
  }

  #ask<A>(question: Effect.Effect<A, JetStreamFailed>): Effect.Effect<A, JetStreamFailed> {
    const way = Effect.flatMap(Random.next, (chance) => Effect.sleep(this.#latencyMs * (1 + chance)))
    const lost = Effect.fail(new JetStreamFailed({ detail: "away" }))
    return way.pipe(
      Effect.andThen(Effect.suspend(() => this.isAway ? lost : question)),
      Effect.tap(way),
      Effect.tap(() => this.isAway || this.isDeaf ? lost : Effect.void)
    )
  }

  get service(): LimitStore["Service"] {
    return LimitStore.of({
      getRevision: (key) => this.#ask(this.#store.getRevision(key)),
      create: (key, value) => this.#ask(this.#store.create(key, value)),
      update: (key, value, revision) =>
        Effect.suspend(() => {
          this.attempts++
          return this.#ask(
            Effect.tap(
              this.#store.update(key, value, revision),
              (written) => Effect.sync(() => Option.isSome(written) && this.writes++)
            )
          )
        })
    })
  }
}

export interface Replica {
  readonly limits: Limits["Service"]
  /** Ends it in good order. */
  readonly stop: Effect.Effect<void>
  /** From now on it alone cannot reach the store. */
  readonly cutOff: () => void
}

/** One more replica. */
export const replica = Effect.fnUntraced(function*(store: TestStore): Effect.fn.Return<Replica> {
  const scope = yield* Scope.make()
  const own = store.forOne()
  const built = yield* Layer.build(Limits.layerNoDeps).pipe(
    Effect.provideService(LimitStore, own.service),
    Scope.provide(scope)
  )
  return {
    limits: Context.get(built, Limits),
    stop: Scope.close(scope, Exit.void),
    cutOff: () => {
      own.isAway = true
    }
  }
})

/** Moments at which something was let through. */
export class Log {
  readonly at: Array<number> = []

  readonly note = Effect.map(Clock.currentTimeMillis, (now) => {
    this.at.push(now)
  })

  /** The most and the least that fell into any window which begins with one of them and ends before `until`. */
  windows(windowMs: number, until = 0): { readonly most: number; readonly least: number } {
    const sorted = this.at.toSorted((a, b) => a - b)
    let most = 0
    let least = Number.POSITIVE_INFINITY
    for (const [index, from] of sorted.entries()) {
      let count = 0
      while (index + count < sorted.length && sorted[index + count]! < from + windowMs) count++
      most = Math.max(most, count)
      if (from + windowMs <= until) least = Math.min(least, count)
    }
    return { most, least }
  }
}
