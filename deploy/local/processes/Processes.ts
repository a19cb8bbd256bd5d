/** Runs scripts to their end, and inspects and stops processes of an earlier start. */
import { type Duration, Effect, FileSystem, Schedule, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { startupMessage } from "../../../shared/process/StartupMessage.ts"
import { StartFailed } from "../settings/Settings.ts"

const textOf = <E>(output: Stream.Stream<Uint8Array, E>) => output.pipe(Stream.decodeText(), Stream.mkString)

/** Runs a script with Node and returns its output. Errors begin with `failure`, and say `timeout` if the script takes too long. */
export const runScript = (options: {
  readonly args: ReadonlyArray<string>
  readonly environment?: Readonly<Record<string, string>>
  readonly within: Duration.Input
  readonly failure: string
  readonly timeout: string
  /** The line of the script's errors that says why it failed: the first or the last. */
  readonly errorLine: 0 | -1
}) => {
  const failed = (reason: string) => new StartFailed({ detail: `${options.failure}: ${reason}` })
  return Effect.gen(function*() {
    const { spawn } = yield* ChildProcessSpawner.ChildProcessSpawner
    const { exitCode, stderr, stdout } = yield* spawn(ChildProcess.make(process.execPath, options.args, {
      env: { ...options.environment },
      extendEnv: true,
      stdin: "ignore",
      forceKillAfter: "1 second"
    }))
    const results = [textOf(stdout), textOf(stderr), exitCode] as const
    const [output, errors, code] = yield* Effect.all(results, { concurrency: "unbounded" })
    return code === 0 ? output : yield* failed(errors.trim().split("\n").at(options.errorLine) || `exit code ${code}`)
  }).pipe(
    Effect.scoped,
    Effect.catchTag("PlatformError", (error) => failed(startupMessage(error))),
    Effect.timeoutOrElse({ duration: options.within, orElse: () => failed(options.timeout) })
  )
}

/** The words of a process's command line; empty if there is no such process or no /proc. */
export const commandLine = Effect.fn("Processes.commandLine")(function*(pid: number) {
  const fs = yield* FileSystem.FileSystem
  const text = yield* fs.readFileString(`/proc/${pid}/cmdline`).pipe(Effect.orElseSucceed(() => ""))
  return text.split("\0").filter((word) => word !== "")
})

const signal = (pid: number, name: "SIGTERM" | "SIGKILL") =>
  Effect.try(() => process.kill(pid, name)).pipe(Effect.ignore)

/** Stops a process that is not a child: SIGTERM, then SIGKILL after five seconds. */
export const endProcess = Effect.fn("Processes.end")(function*(pid: number) {
  const isGone = commandLine(pid).pipe(Effect.map((words) => words.length === 0))
  const gone = isGone.pipe(
    Effect.repeat({ until: (gone) => gone, schedule: Schedule.spaced("20 millis") }),
    Effect.timeoutOption("5 seconds")
  )
  yield* signal(pid, "SIGTERM")
  if ((yield* gone)._tag === "Some") return
  yield* signal(pid, "SIGKILL")
  yield* gone
})
