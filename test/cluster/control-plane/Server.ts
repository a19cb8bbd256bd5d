/** A server as a process: started until it is ready, ended with its scope. */
import { Deferred, Duration, Effect, Schedule, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"

export interface ServerOptions<E, R> {
  readonly name: string
  readonly program: string
  readonly words: ReadonlyArray<string>
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  /** Succeeds once the server is ready; repeated until then. */
  readonly ready: Effect.Effect<unknown, E, R>
  readonly within: Duration.Input
}

/** A server ended or was not ready in time. */
export class ServerFailed extends Schema.TaggedError<ServerFailed>()("ServerFailed", {
  name: Schema.String,
  what: Schema.String,
  log: Schema.String
}) {
  override get message() {
    return `${this.name} ${this.what}:\n${this.log}`
  }
}

export interface Server {
  readonly pid: number
  /** All its output so far. */
  readonly log: () => string
  /** Its exit code, once it has ended. */
  readonly exited: Effect.Effect<number>
  /** Sends the signal and returns once the process has ended. */
  readonly kill: (signal: "SIGTERM" | "SIGKILL") => Effect.Effect<void>
}

/** The runner's SIGTERM ends this process at once, without closing scopes: a server must not outlive it. */
const endWithProcess = (pid: number) => {
  const kill = () => {
    try {
      process.kill(-pid, "SIGKILL")
    } catch {
      // it has ended
    }
  }
  return Effect.acquireRelease(
    Effect.sync(() => process.on("exit", kill)),
    () => Effect.sync(() => process.off("exit", kill))
  )
}

const lastLines = (log: string): string => log.trim().split("\n").slice(-15).join("\n")

export const start = Effect.fn("Server.start")(function*<E, R>(
  { cwd, env = {}, name, program, ready, within, words }: ServerOptions<E, R>
) {
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const child = yield* spawner.spawn(ChildProcess.make(program, words, {
    env: { ...env },
    extendEnv: true,
    stdin: "ignore",
    forceKillAfter: "5 seconds",
    ...cwd === undefined ? {} : { cwd }
  }))
  yield* endWithProcess(child.pid)
  let log = ""
  yield* child.all.pipe(
    Stream.decodeText(),
    Stream.runForEach((text) => Effect.sync(() => log += text)),
    Effect.ignore,
    Effect.forkScoped
  )
  const exit = yield* Deferred.make<number>()
  yield* child.exitCode.pipe(
    // a signal ended it
    Effect.orElseSucceed(() => -1),
    Effect.flatMap((code) => Deferred.succeed(exit, code)),
    Effect.forkScoped
  )
  const exited = Deferred.await(exit)
  const failed = (what: string) => new ServerFailed({ name, what, log: lastLines(log) })
  yield* ready.pipe(
    Effect.retry(Schedule.spaced("100 millis")),
    Effect.orDie,
    Effect.timeoutOrElse({
      duration: within,
      orElse: () => Effect.fail(failed(`is not ready after ${Duration.format(Duration.fromInputUnsafe(within))}`))
    }),
    Effect.raceFirst(Effect.flatMap(exited, (code) => Effect.fail(failed(`exited with ${code} before it was ready`))))
  )
  return {
    pid: child.pid,
    log: () => log,
    exited,
    kill: (killSignal) => child.kill({ killSignal }).pipe(Effect.ignore, Effect.andThen(exited), Effect.asVoid)
  } satisfies Server
})
