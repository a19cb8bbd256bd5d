/**
 * The one secret that the services of a gateway share, and the keys derived from it: to sign addresses of results and to
 * seal what is handed to clients for safekeeping.
 */
import { Config, Effect, Redacted, Schema } from "effect"
import { hkdfSync } from "node:crypto"

/** `GATEWAY_SECRET` is missing or too short to be one. */
export class SecretUnusable extends Schema.TaggedError<SecretUnusable>()("SecretUnusable", {}) {
  override get message() {
    return "GATEWAY_SECRET must be set, to the same 32 or more random characters for every service"
  }
}

const minimumLength = 32

/**
 * A key of 32 bytes for one purpose. Every service that is given the same `GATEWAY_SECRET` derives the same one; from one
 * purpose's key nothing can be learned about another's.
 */
export const deriveKey = (purpose: string): Effect.Effect<Redacted.Redacted<Uint8Array>, SecretUnusable> =>
  Effect.gen(function*() {
    const secret = Redacted.value(yield* Config.Redacted("GATEWAY_SECRET"))
    if (secret.length < minimumLength) return yield* new SecretUnusable()
    return Redacted.make(new Uint8Array(hkdfSync("sha256", secret, "model-gateway", purpose, 32)))
  }).pipe(Effect.catchTag("ConfigError", () => Effect.fail(new SecretUnusable())))
