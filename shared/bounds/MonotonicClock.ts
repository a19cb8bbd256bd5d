/**
 * A monotonic clock in milliseconds, for timeouts and intervals: a correction of the wall clock would lengthen waits or end them early.
 */
import { type Clock, Effect, type Latch, type Scope } from "effect"

export const monotonicMs = (clock: Clock.Clock) => (): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6

/** Converts a time of the wall clock (epoch milliseconds, which processes exchange) to the monotonic clock, and back. */
export const ofEpochMs = (clock: Clock.Clock) => (epochMs: number): number =>
  epochMs - clock.currentTimeMillisUnsafe() + monotonicMs(clock)()
export const toEpochMs = (clock: Clock.Clock) => (at: number): number =>
  at - monotonicMs(clock)() + clock.currentTimeMillisUnsafe()

/**
 * Runs `tick` every `ms` milliseconds until the scope closes. Logs exceptions and continues. Uses Effect's clock, so that tests can use
 * virtual time.
 */
export const every = (ms: number, tick: () => void): Effect.Effect<void, never, Scope.Scope> =>
  repeat(untilNext(ms), tick)

/**
 * Like `every`, but only every `idleMs` milliseconds while `work` is closed, so that an idle process hardly uses any CPU time.
 */
export const everyWhile = (
  work: Latch.Latch,
  ms: number,
  idleMs: number,
  tick: () => void
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.andThen(
    repeat(Effect.andThen(work.await, untilNext(ms)), tick),
    every(idleMs, () => work.isOpen() ? undefined : tick())
  )

/** Waits until the next multiple of `ms`, so that all periodic tasks of a machine share one wakeup of its processor. */
export const untilNext = (ms: number): Effect.Effect<void> =>
  Effect.clockWith((clock) => {
    const now = monotonicMs(clock)()
    // at least a quarter of `ms`, because a timer that runs a little early must not run twice
    return Effect.sleep(Math.ceil(now / ms + 0.25) * ms - now)
  })

const repeat = (wait: Effect.Effect<void>, tick: () => void): Effect.Effect<void, never, Scope.Scope> =>
  Effect.sync(tick).pipe(
    Effect.catchCause((cause) => Effect.logError("a periodic task failed", cause)),
    (run) => Effect.andThen(wait, run),
    Effect.forever,
    Effect.forkScoped,
    Effect.asVoid
  )
