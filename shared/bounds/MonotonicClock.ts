/**
 * A monotonic clock in milliseconds, for timeouts and intervals: a correction of a wall clock would lengthen waits or end them
 * early.
 */
import { type Clock, Effect, type Scope } from "effect"

export const monotonicMs = (clock: Clock.Clock) => (): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** A clock for libraries that measure intervals in wall time: gives them monotonic time instead. */
export const steady = (clock: Clock.Clock): Clock.Clock => {
  const now = monotonicMs(clock)
  const nowNanos = () => clock.monotonicTimeNanosUnsafe()
  return {
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanosUnsafe: nowNanos,
    currentTimeNanos: clock.monotonicTimeNanos,
    monotonicTimeNanosUnsafe: nowNanos,
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  }
}

/**
 * Runs `tick` every `ms` milliseconds until the scope closes. Logs what it throws and carries on. Uses Effect's clock, so that
 * tests can use virtual time.
 */
export const every = (ms: number, tick: () => void): Effect.Effect<void, never, Scope.Scope> =>
  Effect.sync(tick).pipe(
    Effect.catchCause((cause) => Effect.logError("a periodic task failed", cause)),
    Effect.delay(ms),
    Effect.forever,
    Effect.forkScoped,
    Effect.asVoid
  )
