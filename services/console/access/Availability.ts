/** Turns failures and timeouts of NATS into `Unavailable`. */
import { type Duration, Effect, Predicate } from "effect"
import type { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import { Unavailable } from "../api/Errors.ts"

/** Timeout for reading usage counters. There is a record per key and day; about 10,000 are read per second. */
export const whileCounting: Duration.Input = "30 seconds"

/** Fails with `Unavailable` if NATS fails or `duration` elapses. Logs the cause of a failure. */
export const orUnavailable = <A, E, R>(
  effect: Effect.Effect<A, E | JetStreamFailed, R>,
  duration: Duration.Input = "5 seconds"
): Effect.Effect<A, Exclude<E, JetStreamFailed> | Unavailable, R> =>
  effect.pipe(
    Effect.timeoutOrElse({ duration, orElse: () => Effect.fail(new Unavailable()) }),
    Effect.catchIf(
      isJetStreamFailed,
      (error) =>
        Effect.andThen(
          Effect.logWarning("NATS failed on a request of the console", { detail: error.message }),
          new Unavailable()
        )
    )
  ) as Effect.Effect<A, Exclude<E, JetStreamFailed> | Unavailable, R>

const isJetStreamFailed = (error: unknown): error is JetStreamFailed => Predicate.isTagged(error, "JetStreamFailed")
