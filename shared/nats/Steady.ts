/**
 * A monotonic clock in milliseconds, for timeouts and intervals: with a wall clock, every correction of the time would lengthen
 * or end every wait.
 */
import type { Clock } from "effect"

export const steady = (clock: Clock.Clock) => (): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
