/**
 * The first API key: from the environment, otherwise generated once and kept in the state folder.
 *
 * The admin command that registers it gets it in its environment, which other users of the machine cannot read.
 */
import { Effect, Option, Path, Redacted, Schema, Stream } from "effect"
import { ChildProcess, ChildProcessSpawner } from "effect/process"
import { generateSecret, secretPattern } from "../../../shared/keys/ApiKey.ts"
import { startupMessage } from "../../../shared/process/StartupMessage.ts"
import { readOrCreateSecret } from "./StoredSecret.ts"
import { InvalidSetting, Settings } from "../settings/Settings.ts"

export class KeyNotEnsured extends Schema.TaggedError<KeyNotEnsured>()("KeyNotEnsured", { reason: Schema.String }) {
  override get message() {
    return `The first API key could not be created: ${this.reason}`
  }
}

export const readBootstrapKey = Effect.gen(function*() {
  const { bootstrapKey: given } = yield* Settings
  if (Option.isSome(given)) {
    if (secretPattern.test(given.value)) return given.value
    return yield* new InvalidSetting({
      detail: "GATEWAY_BOOTSTRAP_KEY must be sk-gw- followed by 32 letters or digits"
    })
  }
  return yield* readOrCreateSecret("bootstrap-key", secretPattern, Effect.map(generateSecret, Redacted.value))
})

/** Registers the key with the gateway unless it exists. Fails after 20 seconds. */
export const ensureKey = Effect.fn("ensureKey")(
  function*(key: string, natsUrl: string) {
    const path = yield* Path.Path
    const { services } = yield* Settings
    const spawner = yield* ChildProcessSpawner.ChildProcessSpawner
    const args = [path.join(services, "admin", "main.ts"), "keys", "ensure", "--name", "local"]
    const child = yield* spawner.spawn(ChildProcess.make(process.execPath, args, {
      env: { GATEWAY_BOOTSTRAP_KEY: key, NATS_URL: natsUrl },
      extendEnv: true,
      stdin: "ignore",
      stdout: "ignore",
      forceKillAfter: "1 second"
    }))
    const [errors, code] = yield* Effect.all(
      [child.stderr.pipe(Stream.decodeText(), Stream.mkString), child.exitCode],
      {
        concurrency: "unbounded"
      }
    )
    if (code !== 0) return yield* new KeyNotEnsured({ reason: errors.trim().split("\n").at(-1) || `exit code ${code}` })
  },
  Effect.scoped,
  Effect.catchTag("PlatformError", (error) => new KeyNotEnsured({ reason: startupMessage(error) })),
  Effect.timeoutOrElse({
    duration: "20 seconds",
    orElse: () => new KeyNotEnsured({ reason: "no answer within 20 s" })
  })
)
