/**
 * The state folder, used by one supervisor at a time.
 *
 * `supervisor.pid` names the owner. If that process no longer exists, its start was killed: its services may still be stopping and
 * its nats-server may still run.
 */
import { Effect, FileSystem, Path } from "effect"
import type { PlatformError } from "effect/PlatformError"
import { commandLine } from "../processes/Processes.ts"
import { Settings, StartFailed } from "../settings/Settings.ts"

const unusable = (folder: string, { reason }: PlatformError) => {
  const why = reason._tag === "PermissionDenied" ? "this user may not write to it" : "it cannot be created or written"
  return new StartFailed({
    detail: `The state folder ${folder} cannot be used (${why}): set GATEWAY_DATA to another one`
  })
}

/** Locks the folder until the scope closes. Returns whether an earlier owner was killed. */
export const claimDataFolder = Effect.gen(function*() {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { data } = yield* Settings
  const file = path.join(data, "supervisor.pid")

  const take = fs.writeFileString(file, String(process.pid), { flag: "wx" })
  const takeOver = Effect.gen(function*() {
    const pid = Number(yield* fs.readFileString(file))
    const words = pid === process.pid ? [] : yield* commandLine(pid)
    if (words.some((word) => word.endsWith("deploy/local/launch.js"))) {
      const running = `The gateway is already running from ${data} (process ${pid})`
      const advice = "stop it, or set GATEWAY_DATA, GATEWAY_PORT and CONSOLE_PORT to run another one"
      return yield* new StartFailed({ detail: `${running}: ${advice}` })
    }
    yield* fs.remove(file, { force: true })
    yield* take
    return true
  })

  return yield* Effect.acquireRelease(
    fs.makeDirectory(path.join(data, "logs"), { recursive: true }).pipe(
      Effect.andThen(take),
      Effect.as(false),
      Effect.catchIf((error) => error.reason._tag === "AlreadyExists", () => takeOver),
      Effect.catchTag("PlatformError", (error) => unusable(data, error))
    ),
    () => Effect.ignore(fs.remove(file))
  )
})
