/**
 * The first API key: from the environment, otherwise generated once and kept in the state folder.
 *
 * The admin command that registers the key reads it from its environment, which is hidden from other users of the machine.
 */
import { Effect, Option, Redacted } from "effect"
import { generateSecret, keyPrefix, secretPattern, secretShape } from "../../../shared/keys/ApiKey.ts"
import { startupMessage } from "../../../shared/process/StartupMessage.ts"
import { readOrCreateSecret } from "./StoredSecret.ts"
import { runScript } from "../processes/Processes.ts"
import { Settings, StartFailed } from "../settings/Settings.ts"

export const readBootstrapKey = Effect.gen(function*() {
  const { bootstrapKey: given } = yield* Settings
  if (Option.isSome(given)) {
    if (secretPattern.test(given.value)) return given.value
    return yield* new StartFailed({ detail: `GATEWAY_BOOTSTRAP_KEY must be ${secretShape}` })
  }
  const prefix = yield* Effect.mapError(keyPrefix, (error) => new StartFailed({ detail: startupMessage(error) }))
  return yield* readOrCreateSecret("bootstrap-key", secretPattern, Effect.map(generateSecret(prefix), Redacted.value))
})

/** Registers the key with the gateway unless it exists. `None` if it was revoked. Fails after 20 seconds. */
export const ensureKey = Effect.fn("ensureKey")(function*(key: string, natsUrl: string) {
  const { programOf } = yield* Settings
  const said = yield* runScript({
    args: [programOf("admin"), "keys", "ensure", "--name", "local"],
    environment: { GATEWAY_BOOTSTRAP_KEY: key, NATS_URL: natsUrl },
    within: "20 seconds",
    failure: "The first API key could not be created",
    timeout: "no answer within 20 s",
    errorLine: -1
  })
  // the command says nothing else
  return said.trim() === "" ? Option.some(key) : Option.none()
})
