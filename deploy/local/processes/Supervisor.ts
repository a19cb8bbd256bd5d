/**
 * Keeps the gateway's processes running: starts them, says when they are ready, starts again what died, and stops them
 * with the scope in which they were started, the last one first.
 *
 * Each child leads a process group of its own, so that a terminal's Ctrl-C reaches only this process, which then stops
 * them in order. Its standard input is a pipe that nobody writes to: it ends when this process does, however that
 * happens, and a service stops then.
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
import { Settings } from "../settings/Settings.ts"

/** One run of a service: the program, and the question whether it can do its work, which fails until it can. */
export interface Launch {
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** All of it: nothing is inherited. */
  readonly environment: Record<string, string | undefined>
  readonly isReady: Effect.Effect<unknown, Error>
  /** Does the program stop by itself when its standard input ends? If not, a watcher ends it when this process dies. */
  readonly endsWithInput: boolean
}

export interface Service {
  /** Also the name of its log file. */
  readonly name: string
  /** Decided anew for each run, so that a run can take a port that is free by then. */
  readonly launch: Effect.Effect<Launch>
  /** How long it may take to stop before it is killed. */
  readonly stopWithin: Duration.Input
}

export interface Supervised {
  /** Waits until the service is ready for the first time; fails when that takes too long. */
  readonly ready: Effect.Effect<void, NotReady>
}

/** A service did not become ready within the time allowed. */
export class NotReady extends Schema.TaggedError<NotReady>()("NotReady", {
  service: Schema.String,
  seconds: Schema.Finite,
  log: Schema.String,
  tail: Schema.Array(Schema.String)
}) {
  override get message() {
    return withTail(`${this.service} was not ready within ${this.seconds} s`, this.log, this.tail)
  }
}

/** A run ended though nobody asked for it. */
class Died extends Schema.TaggedError<Died>()("Died", { service: Schema.String }) {}

/** How long to wait before a service that died soon after its start is started again. */
const restarts = Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("10 seconds")]).pipe(
  Schedule.jittered
)

/** A service that ran for this long, in milliseconds, is started again at once, and its restarts are counted afresh. */
const ranWell = 10_000

/** The longest wait for readiness at the first start, in seconds. */
const readyWithin = 30

const probes = Schedule.spaced("50 millis")

export class Supervisor extends Context.Service<Supervisor, {
  /** Starts the service and keeps it running until the scope ends. */
  supervise(service: Service): Effect.Effect<Supervised, never, Scope.Scope>
}>()("deploy/local/Supervisor") {
  static readonly layer = Layer.effect(
    Supervisor,
    Effect.gen(function*() {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const { data, project } = yield* Settings
      const { spawn } = yield* ChildProcessSpawner.ChildProcessSpawner
      const groups = yield* killRestOnExit

      /** One run from spawn to death, which it reports. Succeeds if it ran well before. */
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
          let how = "it could not be started"
          if (Result.isFailure(child) && child.failure.reason._tag === "NotFound") {
            how = `there is no ${command} in PATH`
          }
          if (Result.isSuccess(child)) {
            const { all, exitCode, pid } = child.success
            group = pid
            groups.add(group)
            yield* log.follow(all)
            if (!endsWithInput) yield* Effect.ignore(spawn(watcher(pid)))
            yield* isReady.pipe(Effect.retry(probes), Effect.andThen(onReady), Effect.forkScoped)
            how = describeExit(yield* Effect.exit(exitCode))
            yield* log.flushed
          }
          yield* Console.log(
            withTail(`${service.name} died (${how}), starting it again`, log.file, yield* log.tail(10))
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
          return yield* new NotReady({ service: service.name, seconds: readyWithin, log: file, tail })
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

/** The groups of the running children, which die with this process if it has to leave without stopping them. */
const killRestOnExit = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => {
      const groups = new Set<number>()
      const killRest = () => {
        for (const group of groups) {
          try {
            process.kill(-group, "SIGKILL")
          } catch {
            // it has ended by itself
          }
        }
      }
      process.on("exit", killRest)
      return { groups, killRest }
    }),
    ({ killRest }) => Effect.sync(() => process.off("exit", killRest))
  ),
  ({ groups }) => groups
)

/** Ends a process when its own standard input does: `read` returns when this process is gone, for whatever reason. */
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
