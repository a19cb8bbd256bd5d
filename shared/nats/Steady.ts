/**
 * Milliseconds of which only differences say anything, for silences, patience and the like: a wall clock that is set right
 * would lengthen or end every wait by as much as it was wrong.
 */
import type { Clock } from "effect"

export const steady = (clock: Clock.Clock) => (): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
