/**
 * Paces the calls to a provider that has answered 429: none before the time that the provider names, then for a while no more than the
 * provider has accepted. Each worker learns its own share.
 */
import { Clock, Duration, Effect, Random } from "effect"
import { RateLimiter } from "effect/persistence"
import { steady } from "../../bounds/MonotonicClock.ts"
import { Skipped } from "./Skipped.ts"
import type { Target } from "./Target.ts"

export interface Pace {
  /** Whether calls must `wait`. */
  readonly isHeld: (candidate: Target) => boolean
  /** Waits until a call is allowed, if that is before `until` (of the monotonic clock, ms). Returns the epoch for `slowDown`. */
  readonly wait: (candidate: Target, until: number) => Effect.Effect<number, Skipped>
  /** The provider has answered 429 to a call of this epoch: 0 if the call did not `wait`. */
  readonly slowDown: (candidate: Target, epoch: number, retryAfterMs: number) => Effect.Effect<void>
}

/** The pause if a provider names none, in milliseconds. */
export const defaultRetryMs = 1_000

/** The longest wait for a candidate's limits while there are other candidates, in milliseconds. */
export const momentMs = 100

/** How far to spread calls that wait for the same time, so that the result of the first one reaches the others. */
const spreadMs = (delayMs: number): number => Math.min(1_000, Math.max(100, delayMs / 4))

interface Turn {
  readonly phase: RateLimiter.AdaptivePhase
  readonly epoch: number
  /** In milliseconds of the monotonic clock. */
  readonly at: number
}

export const make: Effect.Effect<Pace, never, RateLimiter.RateLimiterStore> = Effect.gen(function*() {
  const limiter = yield* RateLimiter.make
  const onSteadyClock = Effect.provideService(Clock.Clock, steady(yield* Clock.Clock))
  const held = new Set<string>()
  /** Unused turns of calls that went to another candidate. The limiter does not take them back, so the next call gets them. */
  const unused = new Map<string, Turn>()

  const take = ({ key }: Target, now: number): Effect.Effect<Turn> => {
    const left = unused.get(key)
    unused.delete(key)
    if (left !== undefined && left.at > now) return Effect.succeed(left)
    return limiter.adaptiveConsume({ key, tokens: 1, fallbackLimit: 1, fallbackWindow: Duration.minutes(1) }).pipe(
      Effect.orDie,
      Effect.map(({ delay, epoch, phase }) => ({ phase, epoch, at: now + Duration.toMillis(delay) }))
    )
  }

  const wait: Pace["wait"] = Effect.fnUntraced(function*(candidate, until) {
    for (;;) {
      const now = yield* Clock.currentTimeMillis
      const turn = yield* take(candidate, now)
      const { at, epoch, phase } = turn
      if (phase === "inactive") held.delete(candidate.key)
      const delayMs = at - now
      if (delayMs <= 0) return epoch
      if (at > until) {
        // Turns beyond a deadline stay taken: if the queue were that long, it would outlive what was learned.
        if (phase === "learned" && until <= now + momentMs) unused.set(candidate.key, turn)
        return yield* Effect.fail(new Skipped({ reason: "busy", retryAfterMs: Math.ceil(delayMs) }))
      }
      yield* Effect.sleep(phase === "cooldown" ? delayMs + (yield* Random.next) * spreadMs(delayMs) : delayMs)
      // after a cooldown the call must ask again; otherwise it is its turn
      if (phase !== "cooldown") return epoch
    }
  }, onSteadyClock)

  return {
    isHeld: (candidate) => held.has(candidate.key),
    wait,
    slowDown: (candidate, epoch, retryAfterMs) => {
      held.add(candidate.key)
      unused.delete(candidate.key)
      return limiter.adaptiveFeedback({
        key: candidate.key,
        epoch,
        tokens: 1,
        status: 429,
        retryAfter: Duration.millis(retryAfterMs)
      }).pipe(Effect.orDie, onSteadyClock)
    }
  }
})
