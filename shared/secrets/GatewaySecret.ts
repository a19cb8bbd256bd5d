/**
 * The secrets that all services of a gateway share, and the keys that are derived from them. The keys sign URLs of results and encrypt
 * state.
 *
 * `GATEWAY_SECRET` may list several secrets, separated by commas: the first signs and encrypts, all of them verify and decrypt.
 */
import { Array, Config, Effect, Redacted, Schema } from "effect"
import { hkdfSync } from "node:crypto"

const minimumLength = 32

/** `GATEWAY_SECRET` is missing, or a secret in it is too short. */
export class SecretUnusable extends Schema.TaggedError<SecretUnusable>()("SecretUnusable", {}) {
  override get message() {
    return `GATEWAY_SECRET is missing or has fewer than ${minimumLength} characters. Set it to the same random characters ` +
      "for every service; if it lists several secrets, separated by commas, each must have that length."
  }
}

export type Keys = Array.NonEmptyReadonlyArray<Redacted.Redacted<Uint8Array>>

const isLong = ({ length }: string): boolean => length >= minimumLength

const written = (value: string): Array.NonEmptyReadonlyArray<string> => value.split(",") as [string, ...Array<string>]

/** Whether the variable's value can be used. */
export const isUsable = (value: string): boolean => written(value).every(isLong)

/**
 * The secrets as they are written, and then without white space around them. A secret from a file often ends with a newline, and loses
 * it or gets a space before it when another secret joins the list: what it has sealed must remain readable.
 */
const secretsIn = (value: string): Array.NonEmptyReadonlyArray<string> => {
  const secrets = written(value)
  return Array.dedupe(Array.appendAll(secrets, secrets.map((secret) => secret.trim()).filter(isLong)))
}

/**
 * Derives keys of 32 bytes for one purpose, one from each secret. Services with the same `GATEWAY_SECRET` derive the same keys. The
 * keys of one purpose reveal nothing about those of another.
 */
export const deriveKeys = (purpose: string): Effect.Effect<Keys, SecretUnusable> =>
  Effect.gen(function*() {
    const value = Redacted.value(yield* Config.Redacted("GATEWAY_SECRET"))
    if (!isUsable(value)) return yield* new SecretUnusable()
    return Array.map(secretsIn(value), (secret) =>
      Redacted.make(new Uint8Array(hkdfSync("sha256", secret, "model-gateway", purpose, 32))))
  }).pipe(Effect.catchTag("ConfigError", () =>
    Effect.fail(new SecretUnusable())))
