/** The secret that all services share: the one that the environment gives, else one that is made once and kept. */
import { Effect, Option } from "effect"
import { randomBytes } from "node:crypto"
import { keptSecret } from "./KeptSecret.ts"
import { InvalidSetting, Settings } from "./Settings.ts"

const pattern = /^[\w-]{32,}$/

export const gatewaySecret = Effect.gen(function*() {
  const { secret: given } = yield* Settings
  if (Option.isNone(given)) {
    return yield* keptSecret("gateway-secret", pattern, Effect.sync(() => randomBytes(32).toString("base64url")))
  }
  if (given.value.length >= 32) return given.value
  return yield* new InvalidSetting({ detail: "GATEWAY_SECRET must be at least 32 characters" })
})
