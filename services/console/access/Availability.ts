/** What an administrator is told where NATS does not do what was asked. */
import { type Duration, Effect, Predicate } from "effect"
import type { JetStreamFailed } from "../../../shared/nats/JetStream.ts"
import { Unavailable } from "../api/Errors.ts"

/** For what reads counters: there is a record for each key and day, and some ten thousand are read in a second. */
export const whileCounting: Duration.Input = "30 seconds"

/** The cause is for the log; a question that is not answered in time is the same as a refusal. */
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
          Effect.logWarning("NATS did not do what the console asked of it", { detail: error.message }),
          new Unavailable()
        )
    )
  ) as Effect.Effect<A, Exclude<E, JetStreamFailed> | Unavailable, R>

const isJetStreamFailed = (error: unknown): error is JetStreamFailed => Predicate.isTagged(error, "JetStreamFailed")
