/** Ends a command that failed with one plain message and exit code 1, instead of a stack trace. */
import { Console, Effect } from "effect"
import { complaint } from "../../shared/process/Complaint.ts"

export const failPlainly = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.catch(effect, (error) =>
    Effect.andThen(
      Console.error(complaint(error)),
      Effect.sync(() => {
        process.exitCode = 1
      })
    ))
