/**
 * Limits that hold over all workers together, as far as this folder has to know: whoever runs it brings the layer.
 *
 * A limit is of units: calls, tokens. With a window a unit counts for so long after it was taken; without one until it is
 * given back.
 */
import { Context, type Effect } from "effect"

export interface Limit {
  /** What is limited. The same in every process. */
  readonly key: string
  readonly limit: number
  /** Milliseconds; 0 is no window. */
  readonly windowMs: number
}

/** Units that were taken. */
export interface Taken {
  /** It turned out to be so many: those that are too many go back, those that are missing count from now on. */
  readonly settle: (units: number) => void
}

/** There are none to be had in time. */
export interface LimitReached {
  readonly _tag: "LimitReached"
  readonly retryAfterMs: number
}

export class SharedLimits extends Context.Service<SharedLimits, {
  /** `undefined` where it would have to wait. */
  readonly tryTake: (limit: Limit, units: number) => Taken | undefined
  /** Waits for its turn, but not beyond a time (epoch milliseconds), and not at all where it cannot come by then. */
  readonly take: (limit: Limit, units: number, until: number) => Effect.Effect<Taken, LimitReached>
}>()("shared/provider/SharedLimits") {}
