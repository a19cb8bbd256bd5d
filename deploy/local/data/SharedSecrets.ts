/** The secrets that services are told at their start: those that the environment gives, else ones made once and kept. */
import { Effect, Option } from "effect"
import { randomBytes } from "node:crypto"
import { keptSecret } from "./KeptSecret.ts"
import { InvalidSetting, Settings } from "../settings/Settings.ts"

/** The given one, or that in the file of the state folder; of at least so many characters. */
const secretOf = Effect.fnUntraced(
  function*(variable: string, given: Option.Option<string>, file: string, characters: number) {
    if (Option.isNone(given)) {
      const pattern = new RegExp(`^[\\w-]{${characters},}$`)
      return yield* keptSecret(file, pattern, Effect.sync(() => randomBytes(characters).toString("base64url")))
    }
    if (given.value.length >= characters) return given.value
    return yield* new InvalidSetting({ detail: `${variable} must be at least ${characters} characters` })
  }
)

/** What signs in to the console. */
export const adminToken = Effect.flatMap(
  Settings,
  (settings) => secretOf("CONSOLE_ADMIN_TOKEN", settings.adminToken, "admin-token", 24)
)

/** What all services share. */
export const gatewaySecret = Effect.flatMap(
  Settings,
  (settings) => secretOf("GATEWAY_SECRET", settings.secret, "gateway-secret", 32)
)
