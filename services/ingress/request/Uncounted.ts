/**
 * Keeps the costs of ended requests reserved in their budgets until the spending counters include them. The counters lag, and a
 * cost that is neither counted nor reserved could be spent twice.
 */
import { Effect, FiberSet, type Scope } from "effect"
import type { Taken } from "../../../shared/bounds/Limit.ts"
import type { Spending } from "../../../shared/usage/Spending.ts"

/**
 * How much later than its answer a request's usage may be stored, by the clock of the process that counts, in milliseconds: a
 * worker sends both together, but clocks differ.
 */
const storedWithinMs = 1_500

/** How often to look whether costs have been counted, while there are some, in milliseconds. */
const lookMs = 250

/** Maximum number of requests that wait to be counted. Beyond it, the oldest are released, and the log says so. */
const maxWaiting = 100_000

interface Ended {
  readonly taken: Taken
  /** Epoch milliseconds. */
  readonly at: number
}

/** Returns a function that keeps what an ended request has taken from a budget until its cost is counted. */
export const makeUncounted = Effect.fnUntraced(function*(
  spending: Spending["Service"],
  now: () => number
): Effect.fn.Return<(taken: Taken) => void, never, Scope.Scope> {
  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  /** Ended requests, in the order of their ends. */
  const waiting: Array<Ended> = []
  let first = 0
  let isOverflowing = false

  /** Reports once that costs are neither counted nor reserved, until all fit again. */
  const report = (isOver: boolean): void => {
    if (isOver && !isOverflowing) {
      fork(Effect.logError("costs of ended requests are released before they are counted: budgets may be exceeded"))
    }
    isOverflowing = isOver
  }

  const release = (): void => {
    report(waiting.length - first > maxWaiting)
    const countedUntil = spending.countedUntil() - storedWithinMs
    for (let next = waiting[first]; next !== undefined; next = waiting[first]) {
      if (next.at > countedUntil && waiting.length - first <= maxWaiting) break
      next.taken.settle(0)
      first++
    }
    // emptied only now and then, because removing the first element moves all others
    if (first > 1_000 || first === waiting.length) {
      waiting.splice(0, first)
      first = 0
    }
  }

  const follow: Effect.Effect<void> = Effect.suspend(() => {
    release()
    return waiting.length === 0 ? Effect.void : Effect.andThen(Effect.sleep(lookMs), follow)
  })

  return (taken) => {
    waiting.push({ taken, at: now() })
    if (waiting.length === 1) fork(follow)
  }
})
