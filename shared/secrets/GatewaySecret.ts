/**
 * The secret that all services of a gateway share, and the keys derived from it. They sign URLs of results and encrypt
 * state that clients keep.
 */
import { Config, Effect, Redacted, Schema } from "effect"
import { hkdfSync } from "node:crypto"

/** `GATEWAY_SECRET` is missing or too short. */
export class SecretUnusable extends Schema.TaggedError<SecretUnusable>()("SecretUnusable", {}) {
  override get message() {
    return "GATEWAY_SECRET is missing or too short. Set it to the same 32 or more random characters for every service."
  }
}

const minimumLength = 32

/**
 * Derives a key of 32 bytes for one purpose. Services with the same `GATEWAY_SECRET` derive the same key. The key of one
 * purpose reveals nothing about the key of another.
 */
export const deriveKey = (purpose: string): Effect.Effect<Redacted.Redacted<Uint8Array>, SecretUnusable> =>
  Effect.gen(function*() {
    const secret = Redacted.value(yield* Config.Redacted("GATEWAY_SECRET"))
    if (secret.length < minimumLength) return yield* new SecretUnusable()
    return Redacted.make(new Uint8Array(hkdfSync("sha256", secret, "model-gateway", purpose, 32)))
  }).pipe(Effect.catchTag("ConfigError", () => Effect.fail(new SecretUnusable())))
