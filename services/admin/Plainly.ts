/** Ends a command that failed with one plain message and exit code 1, instead of a stack trace. */
import { Console, Effect } from "effect"

export const failPlainly = <A, E extends { readonly message: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.catch(effect, (error) =>
    Effect.andThen(
      Console.error(error.message),
      Effect.sync(() => {
        process.exitCode = 1
      })
    ))
