/** The interface for limits of providers that hold over all workers together. The worker service implements it with `shared/limits`. */
import { Context, type Effect } from "effect"
import type { Limit, Taken, UnitsMissing } from "../../bounds/Limit.ts"

export class SharedLimits extends Context.Service<SharedLimits, {
  /** Takes units immediately; `undefined` if the call would have to wait. */
  readonly tryTake: (limit: Limit, units: number) => Taken | undefined
  /** Waits for the units. Fails immediately if they cannot be available before `until` (epoch milliseconds). */
  readonly take: (limit: Limit, units: number, until: number) => Effect.Effect<Taken, UnitsMissing>
}>()("shared/provider/routing/SharedLimits") {}
