/**
 * Keeps the gateway's processes running: starts them, reports when they are ready, restarts those that die, and stops them in
 * reverse order when their scopes close.
 *
 * Each child leads its own process group, so that Ctrl-C reaches only this process, which then stops them in order. A child's
 * standard input is a pipe that closes when this process ends, however that happens; services stop then.
 */
import {
  Clock,
  Console,
  Context,
  Deferred,
  Effect,
  Exit,
  FileSystem,
  Layer,
  Path,
  Result,
  Schedule,
  Schema
} from "effect"
import type { Duration, Scope } from "effect"
import type { PlatformError } from "effect/PlatformError"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { openLog } from "./ServiceLog.ts"
import type { ServiceLog } from "./ServiceLog.ts"
import { Settings, StartFailed } from "../settings/Settings.ts"

/** One run of a service. */
export interface Launch {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** The whole environment: nothing is inherited. */
  readonly environment: Record<string, string | undefined>
  /** Fails until the service is ready. */
  readonly isReady: Effect.Effect<unknown, Error>
  /** Whether the program stops when its standard input ends. If not, a watcher stops it when this process dies. */
  readonly endsWithInput: boolean
}

export interface Service {
  /** The service's name, which is also that of its log file. */
  readonly name: string
  /** Evaluated for each run, so that each can choose a free port. */
  readonly launch: Effect.Effect<Launch>
  /** How long the service may take to stop before it is killed. */
  readonly stopWithin: Duration.Input
}

export interface Supervised {
  /** Waits until the service is ready for the first time; fails after `readyWithin`. */
  readonly ready: Effect.Effect<void, StartFailed>
}

class Died extends Schema.TaggedError<Died>()("Died", { service: Schema.String }) {}

/** The delay before restarting a service that died soon after its start. */
const restarts = Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("10 seconds")]).pipe(
  Schedule.jittered
)

/** A service that ran this long, in milliseconds, restarts immediately, and its delays start over. */
const ranWell = 10_000

/** The longest wait for readiness at the first start, in seconds. */
const readyWithin = 30

export class Supervisor extends Context.Service<Supervisor, {
  /** Starts the service and keeps it running until the scope closes. */
  supervise(service: Service): Effect.Effect<Supervised, never, Scope.Scope>
}>()("deploy/local/processes/Supervisor") {
  static readonly layer = Layer.effect(
    Supervisor,
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const { data, project } = yield* Settings
      const { spawn } = yield* ChildProcessSpawner.ChildProcessSpawner
      const groups = yield* killRestOnExit

      /** Runs the service until it dies, and reports that. Succeeds if it ran for `ranWell`. */
      const run = Effect.fn("Supervisor.run")(
        function*(service: Service, log: ServiceLog, onReady: Effect.Effect<void>) {
          const { args, command, endsWithInput, environment, isReady } = yield* service.launch
          const began = yield* Clock.currentTimeMillis
          let group: number | undefined
          yield* Effect.addFinalizer(() => Effect.sync(() => group !== undefined && groups.delete(group)))
          const child = yield* Effect.result(spawn(ChildProcess.make(command, args, {
            cwd: project,
            env: environment,
            extendEnv: false,
            stdin: { stream: "pipe", endOnDone: false },
            forceKillAfter: service.stopWithin
          })))
          let how = Result.isFailure(child) && child.failure.reason._tag === "NotFound"
            ? `there is no ${command} in PATH`
            : "it could not be started"
          if (Result.isSuccess(child)) {
            const { all, exitCode, pid } = child.success
            group = pid
            groups.add(group)
            yield* log.follow(all)
            if (!endsWithInput) yield* Effect.ignore(spawn(watcher(pid)))
            yield* isReady.pipe(Effect.retry(Schedule.spaced("50 millis")), Effect.andThen(onReady), Effect.forkScoped)
            how = describeExit(yield* Effect.exit(exitCode))
            yield* log.flushed
          }
          yield* Console.log(
            withTail(`${service.name} died (${how}), restarting it`, log.file, yield* log.tail(10))
          )
          if ((yield* Clock.currentTimeMillis) - began < ranWell) return yield* new Died({ service: service.name })
        }
      )

      const supervise = Effect.fn("Supervisor.supervise")(function*(service: Service) {
        const file = path.join(data, "logs", `${service.name}.log`)
        const firstReady = yield* Deferred.make<void>()
        let log: ServiceLog | undefined

        const onReady = Effect.gen(function*() {
          const isFirst = yield* Deferred.succeed(firstReady, void 0)
          if (!isFirst) yield* Console.log(`${service.name} is ready again`)
        })
        const once = Effect.gen(function*() {
          log = yield* openLog(file)
          yield* run(service, log, onReady)
        }).pipe(Effect.scoped, Effect.provideService(FileSystem.FileSystem, fs))
        yield* once.pipe(Effect.retry(restarts), Effect.forever, Effect.forkScoped)

        const tooLate = Effect.gen(function*() {
          const tail = log === undefined ? [] : yield* log.tail(10)
          const late = `${service.name} was not ready within ${readyWithin} s`
          return yield* new StartFailed({ detail: withTail(late, file, tail) })
        })
        return {
          ready: Deferred.await(firstReady).pipe(
            Effect.timeoutOrElse({ duration: `${readyWithin} seconds`, orElse: () => tooLate })
          )
        }
      })
      return Supervisor.of({ supervise })
    })
  )
}

/** The children's process groups, which are killed if this process exits without stopping them. */
const killRestOnExit = Effect.gen(function*() {
  const groups = new Set<number>()
  const killRest = () => {
    for (const group of groups) {
      try {
        process.kill(-group, "SIGKILL")
      } catch {
        // it has already ended
      }
    }
  }
  process.on("exit", killRest)
  yield* Effect.addFinalizer(() => Effect.sync(() => process.off("exit", killRest)))
  return groups
})

/** Stops a process when this one ends for any reason: then `read` returns. */
const watcher = (pid: number) =>
  ChildProcess.make("sh", ["-c", `read _; kill "$0"`, String(pid)], { stdin: { stream: "pipe", endOnDone: false } })

/** `exit code 1`, or the signal that ended it. */
const describeExit = (exit: Exit.Exit<number, PlatformError>) =>
  Exit.match(exit, {
    onSuccess: (code) => `exit code ${code}`,
    onFailure: (cause) => /SIG[A-Z0-9]+/.exec(String(cause))?.[0] ?? "for an unknown reason"
  })

const withTail = (line: string, file: string, tail: ReadonlyArray<string>) =>
  [tail.length === 0 ? `${line} (log: ${file})` : `${line}; the end of ${file}:`, ...tail.map((text) => `  | ${text}`)]
    .join("\n")
