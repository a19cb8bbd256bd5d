/** Builds the console's web app before the first start and after changes of its sources. */
import { Console, Effect, FileSystem, Path, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { startupMessage } from "../../../shared/process/StartupMessage.ts"
import { Settings } from "../settings/Settings.ts"

/** The service with the admin API and the web app. */
export const consoleService = "console"

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

/** Runs the console's build, which does nothing if it is up to date. Fails after a minute. */
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
  const [output, errors, code] = yield* Effect.all([
    child.stdout.pipe(Stream.decodeText(), Stream.mkString),
    child.stderr.pipe(Stream.decodeText(), Stream.mkString),
    child.exitCode
  ], { concurrency: "unbounded" })
  if (code !== 0) {
    return yield* new WebAppNotBuilt({ reason: errors.trim().split("\n")[0] || `exit code ${code}` })
  }
  if (output !== "") yield* Console.log(output.trim())
}).pipe(
  Effect.scoped,
  Effect.catchTag("PlatformError", (error) => new WebAppNotBuilt({ reason: startupMessage(error) })),
  Effect.timeoutOrElse({
    duration: "1 minute",
    orElse: () => new WebAppNotBuilt({ reason: "it took more than a minute" })
  })
)
