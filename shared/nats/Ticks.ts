/** Periodic work on Effect's clock, so that tests can run it on virtual time. */
import { Effect, type Scope } from "effect"

/** Runs `tick` every `ms` milliseconds until the scope closes. Logs what it throws and carries on. */
export const every = (ms: number, tick: () => void): Effect.Effect<void, never, Scope.Scope> =>
  Effect.sync(tick).pipe(
    Effect.catchCause((cause) => Effect.logError("a periodic task failed", cause)),
    Effect.delay(ms),
    Effect.forever,
    Effect.forkScoped,
    Effect.asVoid
  )
