/** Builds the console's web app before the first start and after changes of its sources. */
import { Console, Effect, FileSystem, Path } from "effect"
import { runScript } from "./Processes.ts"
import { Settings } from "../settings/Settings.ts"

/** The service with the admin API and the web app. */
export const consoleService = "console"

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
  const output = yield* runScript({
    args: [path.join(services, consoleService, "build.ts")],
    within: "1 minute",
    failure: "The console's web app could not be built",
    timeout: "it took more than a minute",
    errorLine: 0
  })
  if (output !== "") yield* Console.log(output.trim())
})
