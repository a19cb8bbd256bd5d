/** Inspects and stops processes of an earlier start. */
import { Effect, FileSystem, Schedule } from "effect"

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
