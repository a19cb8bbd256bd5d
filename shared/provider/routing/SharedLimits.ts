/** The limits of providers that hold over all workers together. A port: the worker service supplies `shared/limits`. */
import { Context, type Effect } from "effect"
import type { Limit, LimitReached, Taken } from "../../bounds/Limit.ts"

export class SharedLimits extends Context.Service<SharedLimits, {
  /** `undefined` if the units require waiting. */
  readonly tryTake: (limit: Limit, units: number) => Taken | undefined
  /** Waits for the units. Fails at once if they cannot be available before `until` (epoch milliseconds). */
  readonly take: (limit: Limit, units: number, until: number) => Effect.Effect<Taken, LimitReached>
}>()("shared/provider/routing/SharedLimits") {}
