/** Prints the error of a failed command as one message without a stack trace, and sets exit code 1. */
import { Console, Effect } from "effect"
import { CliError } from "effect/cli"
import { startupMessage } from "../../shared/process/StartupMessage.ts"

export const exitWithMessage = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.catchIf(
    effect,
    // `Command.run` has already printed errors of its own
    (error) => !CliError.isCliError(error),
    (error) =>
      Effect.andThen(
        Console.error(startupMessage(error)),
        Effect.sync(() => {
          process.exitCode = 1
        })
      )
  )
