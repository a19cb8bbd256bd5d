/**
 * The pace of calls to a provider that has answered 429: none before the time that the provider names, then for a while
 * no more than the provider has accepted. Each worker learns its own share.
 */
import { Clock, Duration, Effect, Random } from "effect"
import { RateLimiter } from "effect/persistence"
import { Skipped } from "./Skipped.ts"
import type { Candidate } from "./Route.ts"

export interface Pace {
  /** Whether calls must `wait`. */
  readonly isHeld: (candidate: Candidate) => boolean
  /** Waits until a call is allowed, if that is before `until` (epoch milliseconds). Returns the epoch for `slowDown`. */
  readonly wait: (candidate: Candidate, until: number) => Effect.Effect<number, Skipped>
  /** The provider has answered 429 to a call of this epoch: 0 if the call did not `wait`. */
  readonly slowDown: (candidate: Candidate, epoch: number, retryAfterMs: number) => Effect.Effect<void>
}

/** The pause if a provider names none, in milliseconds. */
export const defaultRetryMs = 1_000

/** Spreads the calls that wait for the same time, so that the first one's result reaches the others. */
const spreadMs = (delayMs: number): number => Math.min(1_000, Math.max(100, delayMs / 4))

export const make: Effect.Effect<Pace, never, RateLimiter.RateLimiterStore> = Effect.gen(function*() {
  const limiter = yield* RateLimiter.make
  const held = new Set<string>()

  const wait: Pace["wait"] = Effect.fnUntraced(function*(candidate, until) {
    for (;;) {
      const { delay, epoch, phase } = yield* limiter.adaptiveConsume({
        key: candidate.key,
        tokens: 1,
        fallbackLimit: 1,
        fallbackWindow: Duration.minutes(1)
      }).pipe(Effect.orDie)
      if (phase === "inactive") held.delete(candidate.key)
      const delayMs = Duration.toMillis(delay)
      if (delayMs <= 0) return epoch
      if ((yield* Clock.currentTimeMillis) + delayMs > until) {
        return yield* Effect.fail(new Skipped({ reason: "busy", retryAfterMs: Math.ceil(delayMs) }))
      }
      yield* Effect.sleep(phase === "cooldown" ? delayMs + (yield* Random.next) * spreadMs(delayMs) : delayMs)
      // after a cooldown it must ask again; otherwise this is its turn
      if (phase !== "cooldown") return epoch
    }
  })

  return {
    isHeld: (candidate) => held.has(candidate.key),
    wait,
    slowDown: (candidate, epoch, retryAfterMs) => {
      held.add(candidate.key)
      return limiter.adaptiveFeedback({
        key: candidate.key,
        epoch,
        tokens: 1,
        status: 429,
        retryAfter: Duration.millis(retryAfterMs)
      }).pipe(Effect.orDie)
    }
  }
})
