/** What becomes of a failure that is not the client's: the log is told of it, the client only that there was one. */
import { Effect } from "effect"
import { InternalError } from "../../shared/contract/JobError.ts"

export const ownFault =
  (what: string) => <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, InternalError, R> =>
    effect.pipe(
      Effect.tapError((error) => Effect.logError(what, error)),
      Effect.mapError(() => new InternalError())
    )
