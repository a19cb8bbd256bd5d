/**
 * Limits that hold over all replicas of a service together, of keys and of providers.
 *
 * A limit counts units, such as requests or tokens. With a window, a unit counts for that long after it was taken; without
 * one, until it is returned.
 */
import { Config } from "effect"
import { atLeast } from "./Fields.ts"

export interface Limit {
  /** Names the limit, the same in every replica: letters, digits and `-_=/.`. */
  readonly key: string
  readonly limit: number
  /** Milliseconds; 0 for no window. */
  readonly windowMs: number
}

/** Units taken from a limit. */
export interface Taken {
  /** Corrects the number of units: the surplus is returned, missing units count from now on. */
  readonly settle: (units: number) => void
}

/** The units are not available in time. */
export interface LimitReached {
  readonly _tag: "LimitReached"
  readonly retryAfterMs: number
}

/**
 * Reads `GATEWAY_LIMIT_WINDOW_MS`: the window of limits per minute, in milliseconds (default 60,000; shorter only to see
 * limits at work sooner).
 */
export const limitWindowMs = Config.schema(atLeast(1), "GATEWAY_LIMIT_WINDOW_MS").pipe(Config.withDefault(60_000))
