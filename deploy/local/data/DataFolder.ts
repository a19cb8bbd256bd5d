/**
 * The state folder, used by one supervisor at a time.
 *
 * `supervisor.pid` names the owner. If that process no longer exists, its start was killed: its services may still be stopping and
 * its nats-server may still run.
 */
import { Effect, FileSystem, Path, Schema } from "effect"
import type { PlatformError } from "effect/PlatformError"
import { commandLine } from "../processes/Processes.ts"
import { Settings } from "../settings/Settings.ts"

export class AlreadyRunning extends Schema.TaggedError<AlreadyRunning>()("AlreadyRunning", {
  pid: Schema.Int,
  folder: Schema.String
}) {
  override get message() {
    return `The gateway is already running from ${this.folder} (process ${this.pid}): `
      + "stop it, or set GATEWAY_DATA and GATEWAY_PORT to run another one"
  }
}

export class DataFolderUnusable extends Schema.TaggedError<DataFolderUnusable>()("DataFolderUnusable", {
  folder: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `The state folder ${this.folder} cannot be used (${this.reason}): set GATEWAY_DATA to another one`
  }
}

const whyNot = ({ reason }: PlatformError): string =>
  reason._tag === "PermissionDenied" ? "this user may not write to it" : "it cannot be created or written"

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
    if (words.some((word) => word.endsWith("deploy/local/main.ts"))) {
      return yield* new AlreadyRunning({ pid, folder: data })
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
      Effect.catchTag("PlatformError", (error) => new DataFolderUnusable({ folder: data, reason: whyNot(error) }))
    ),
    () => Effect.ignore(fs.remove(file))
  )
})
