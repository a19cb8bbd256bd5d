/** What signs in to the console: the token that the environment gives, else one that is made once and kept. */
import { Effect, Option } from "effect"
import { randomBytes } from "node:crypto"
import { keptSecret } from "./KeptSecret.ts"
import { InvalidSetting, Settings } from "./Settings.ts"

const pattern = /^[\w-]{24,}$/

export const adminToken = Effect.gen(function*() {
  const { adminToken: given } = yield* Settings
  if (Option.isNone(given)) {
    return yield* keptSecret("admin-token", pattern, Effect.sync(() => randomBytes(24).toString("base64url")))
  }
  if (given.value.length >= 24) return given.value
  return yield* new InvalidSetting({ detail: "CONSOLE_ADMIN_TOKEN must be at least 24 characters" })
})
