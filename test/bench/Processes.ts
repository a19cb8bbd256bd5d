/**
 * The processes of a benchmark: each listens on its own port, logs to a file, stops when the scope closes, and reports its CPU
 * time.
 */
import { nodeFlagsOf } from "../../shared/process/NodeFlags.ts"
import type { PlatformError } from "effect"
import { Duration, Effect, FileSystem, Path, Schedule, Schema } from "effect"
import type { HttpClientRequest } from "effect/http"
import { HttpClient } from "effect/http"
import { ChildProcess, CommandLine } from "effect/process"
import { bundles } from "../fixture/gateway/Bundles.ts"
import { freePort as findFreePort } from "../fixture/gateway/ServiceProcess.ts"

export class BenchFailed extends Schema.TaggedError<BenchFailed>()("BenchFailed", { reason: Schema.String }) {
  override get message() {
    return this.reason
  }
}

export interface Running {
  readonly pid: number
  readonly exitCode: Effect.Effect<number, PlatformError.PlatformError>
  /** The path of the log. */
  readonly log: string
}

/** A free TCP port of 127.0.0.1. */
export const freePort = Effect.promise(findFreePort)

/** Starts a program until the scope closes. The log is `<logs>/<name>.log`. */
export const start = Effect.fn("Processes.start")(function*(
  logs: string,
  name: string,
  words: ReadonlyArray<string>,
  env: Record<string, string>
) {
  const path = yield* Path.Path
  const log = path.join(logs, `${name.replaceAll(" ", "-")}.log`)
  // creates the file at once, or empties that of an earlier program with this name
  yield* (yield* FileSystem.FileSystem).writeFileString(log, "")
  // The shell only redirects the output and then becomes the program, so that the pid is the program's.
  const script = yield* Effect.fromResult(CommandLine.join(["exec", ...words]))
  const quotedLog = yield* Effect.fromResult(CommandLine.quote(log))
  const handle = yield* ChildProcess.make(`${script} >${quotedLog} 2>&1`, {
    shell: "/bin/sh",
    env,
    extendEnv: true,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
    forceKillAfter: "5 seconds"
  })
  return { pid: handle.pid, exitCode: handle.exitCode, log } satisfies Running
})

/** Runs a file on this process's Node. */
export const startNode = (
  logs: string,
  name: string,
  file: string,
  env: Record<string, string>,
  words: ReadonlyArray<string> = []
) => start(logs, name, [process.execPath, file, ...words], { NODE_ENV: "production", ...env })

/** Starts a service of the gateway as the image does, from its bundle. */
export const startService = (logs: string, name: string, service: string, env: Record<string, string>) =>
  start(logs, name, [process.execPath, ...nodeFlagsOf(service), `${bundles()}/${service}.js`], {
    NODE_ENV: "production",
    ...env
  })

/** Waits (30 s by default) until the request is answered with 200; fails at once if the program ends. */
export const answers = Effect.fn("Processes.answers")(function*(
  program: Running,
  request: HttpClientRequest.HttpClientRequest,
  options: { readonly every?: Duration.Input; readonly within?: Duration.Input } = {}
) {
  const { every = "100 millis" } = options
  const within = Duration.fromInputUnsafe(options.within ?? "30 seconds")
  const client = yield* HttpClient.HttpClient
  let last = "no answer"
  const asked = client.execute(request).pipe(
    Effect.timeout("5 seconds"),
    Effect.flatMap((response) => Effect.map(response.text, (text) => ({ status: response.status, text }))),
    Effect.filterOrFail(({ status }) => status === 200, ({ status, text }) => {
      last = `${status} ${text.slice(0, 300)}`
      return new BenchFailed({ reason: last })
    }),
    Effect.retry(Schedule.spaced(every).pipe(Schedule.upTo({ duration: within }))),
    Effect.mapError(() =>
      new BenchFailed({ reason: `not ready within ${Duration.format(within)}: ${last}. See ${program.log}` })
    )
  )
  const ended = program.exitCode.pipe(
    Effect.flatMap((code) => new BenchFailed({ reason: `exited with code ${code}. See ${program.log}` }))
  )
  yield* Effect.raceFirst(asked, ended)
})

/** Waits up to a minute for a matching line in the log. */
export const untilLogged = Effect.fn("Processes.untilLogged")(function*(
  program: Running,
  line: RegExp,
  every: Duration.Input = "100 millis"
) {
  const fs = yield* FileSystem.FileSystem
  yield* fs.readFileString(program.log).pipe(
    Effect.repeat({ until: (log) => line.test(log), schedule: Schedule.spaced(every) }),
    Effect.timeoutOrElse({
      duration: "1 minute",
      orElse: () => new BenchFailed({ reason: `not ready within a minute. See ${program.log}` })
    })
  )
})

/** The processes' CPU time so far, user and system, in microseconds. */
export const cpuMicros = (pids: ReadonlyArray<number>) =>
  Effect.map(Effect.forEach(pids, cpuMicrosOf), (micros) => micros.reduce((sum, one) => sum + one, 0))

const cpuMicrosOf = Effect.fn("Processes.cpuMicros")(function*(pid: number) {
  const stat = yield* (yield* FileSystem.FileSystem).readFileString(`/proc/${pid}/stat`)
  // The program's name is in parentheses and may contain spaces; utime and stime are fields 14 and 15.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const ticks = Number(fields[11]) + Number(fields[12])
  const ticksPerSecond = 100
  return ticks * 1_000_000 / ticksPerSecond
})
