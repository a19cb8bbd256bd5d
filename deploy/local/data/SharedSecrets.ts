/** Secrets of the services: from the environment, otherwise generated once and kept. */
import { Effect, Option } from "effect"
import { randomBytes } from "node:crypto"
import * as GatewaySecret from "../../../shared/secrets/GatewaySecret.ts"
import { readOrCreateSecret } from "./StoredSecret.ts"
import { Settings, StartFailed } from "../settings/Settings.ts"

const hasLength = (characters: number) => (text: string): boolean => text.length >= characters

/** The variable's value, or the secret in the file; `characters` is the minimum length. */
const secretOf = Effect.fnUntraced(
  function*(
    variable: string,
    given: Option.Option<string>,
    file: string,
    characters: number,
    isUsable = hasLength(characters)
  ) {
    if (Option.isNone(given)) {
      const pattern = new RegExp(`^[\\w-]{${characters},}$`)
      return yield* readOrCreateSecret(file, pattern, Effect.sync(() => randomBytes(characters).toString("base64url")))
    }
    if (isUsable(given.value)) return given.value
    return yield* new StartFailed({ detail: `${variable} must be at least ${characters} characters` })
  }
)

export const readAdminToken = Effect.flatMap(
  Settings,
  (settings) => secretOf("CONSOLE_ADMIN_TOKEN", settings.adminToken, "admin-token", 24)
)

export const readGatewaySecret = Effect.flatMap(
  Settings,
  (settings) => secretOf("GATEWAY_SECRET", settings.secret, "gateway-secret", 32, GatewaySecret.isUsable)
)
