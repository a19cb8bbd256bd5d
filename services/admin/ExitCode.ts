/** Prints the error of a failed command as one message without a stack trace. */
import { Console, Effect, Runtime } from "effect"
import { CliError } from "effect/cli"
import { startupMessage } from "../../shared/process/StartupMessage.ts"

/** Succeeds with the exit code of the command. */
export const exitCodeOf = <A, E, R>(command: Effect.Effect<A, E, R>): Effect.Effect<number, never, R> =>
  Effect.matchEffect(command, {
    onSuccess: () => Effect.succeed(0),
    onFailure: (error) =>
      CliError.isCliError(error)
        // `Command.runWith` has already printed errors of its own
        ? Effect.succeed(Runtime.getErrorExitCode(error))
        : Effect.as(Console.error(startupMessage(error)), 1)
  })
