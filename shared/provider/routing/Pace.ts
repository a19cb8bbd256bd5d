/**
 * The pace at which a provider that answers 429 is called: not before the time it names and then, while that is fresh in
 * memory, no faster than it was seen to take. Each worker finds its own share.
 */
import { Clock, Duration, Effect, Random } from "effect"
import { RateLimiter } from "effect/persistence"
import { Passed } from "./Passed.ts"
import type { Candidate } from "./Route.ts"

export interface Pace {
  /** Whether `keep` has anything to say. */
  readonly isHeld: (candidate: Candidate) => boolean
  /** Waits until it may be called, if that is before a time (epoch milliseconds). Returns what `slow` is to be told. */
  readonly keep: (candidate: Candidate, until: number) => Effect.Effect<number, Passed>
  /** It answered 429 to a call of this epoch: 0 where `keep` had nothing to say. */
  readonly slow: (candidate: Candidate, epoch: number, retryAfterMs: number) => Effect.Effect<void>
}

/** What a provider is taken to mean that names no time, in milliseconds. */
export const defaultRetryMs = 1_000

/** Those who have waited for one moment do not all go on at once: the first one's fate is told to the rest. */
const spreadMs = (delayMs: number): number => Math.min(1_000, Math.max(100, delayMs / 4))

export const make: Effect.Effect<Pace, never, RateLimiter.RateLimiterStore> = Effect.gen(function*() {
  const limiter = yield* RateLimiter.make
  const held = new Set<string>()

  const keep: Pace["keep"] = Effect.fnUntraced(function*(candidate, until) {
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
        return yield* Effect.fail(new Passed("busy", Math.ceil(delayMs)))
      }
      yield* Effect.sleep(phase === "cooldown" ? delayMs + (yield* Random.next) * spreadMs(delayMs) : delayMs)
      // a cooldown tells only when to ask again; otherwise this is its turn
      if (phase !== "cooldown") return epoch
    }
  })

  return {
    isHeld: (candidate) => held.has(candidate.key),
    keep,
    slow: (candidate, epoch, retryAfterMs) => {
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
