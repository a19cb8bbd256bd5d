/** The console's web app, built before the first start and after each change of its sources. */
import { Console, Effect, FileSystem, Path, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { complaint } from "../../../shared/process/Complaint.ts"
import { Settings } from "../settings/Settings.ts"

/** The service with the admin API and the web app. */
export const consoleService = "console"

/** The web app could not be made of its sources. */
export class WebAppNotBuilt extends Schema.TaggedError<WebAppNotBuilt>()("WebAppNotBuilt", { reason: Schema.String }) {
  override get message() {
    return `The console's web app could not be built: ${this.reason}`
  }
}

export const isConsoleThere = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { services } = yield* Settings
  return yield* fs.exists(path.join(services, consoleService, "main.ts"))
})

/** Runs the console's own build, which knows whether there is anything to do, for at most a minute. */
export const buildWebApp = Effect.gen(function*() {
  const path = yield* Path.Path
  const { services } = yield* Settings
  const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
  const child = yield* spawner.spawn(
    ChildProcess.make(process.execPath, [path.join(services, consoleService, "build.ts")], {
      extendEnv: true,
      stdin: "ignore",
      forceKillAfter: "1 second"
    })
  )
  const [said, complained, code] = yield* Effect.all([
    child.stdout.pipe(Stream.decodeText(), Stream.mkString),
    child.stderr.pipe(Stream.decodeText(), Stream.mkString),
    child.exitCode
  ], { concurrency: "unbounded" })
  if (code !== 0) {
    return yield* new WebAppNotBuilt({ reason: complained.trim().split("\n")[0] || `exit code ${code}` })
  }
  if (said !== "") yield* Console.log(said.trim())
}).pipe(
  Effect.scoped,
  Effect.catchTag("PlatformError", (error) => new WebAppNotBuilt({ reason: complaint(error) })),
  Effect.timeoutOrElse({
    duration: "1 minute",
    orElse: () => new WebAppNotBuilt({ reason: "it was not done within a minute" })
  })
)
