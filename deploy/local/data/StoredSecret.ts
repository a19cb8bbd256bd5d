/** Secrets generated at the first start and kept in the state folder, readable only by its owner. */
import { Effect, FileSystem, Path } from "effect"
import { Settings } from "../settings/Settings.ts"

/** Reads this secret from the state folder, or generates it if the file is missing or invalid, as after a full disk. */
export const readOrCreateSecret = Effect.fn("keptSecret")(function*(
  name: string,
  pattern: RegExp,
  generate: Effect.Effect<string>
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { data } = yield* Settings
  const file = path.join(data, name)
  const kept = (yield* fs.readFileString(file).pipe(Effect.orElseSucceed(() => ""))).trim()
  if (pattern.test(kept)) return kept
  const secret = yield* generate
  yield* fs.remove(file, { force: true })
  yield* fs.writeFileString(file, `${secret}\n`, { mode: 0o600, flag: "wx" })
  return secret
})
