/** What an API key is, how one is made, and how it is recognised without being stored. */
import { DateTime, Effect, Redacted, Schema } from "effect"
import { hash, randomInt } from "node:crypto"

const prefix = "sk-gw-"
const secretLength = 32
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** The shape of every key: `sk-gw-` and 32 base62 characters. */
export const secretPattern = /^sk-gw-[0-9A-Za-z]{32}$/

/** What is kept of a key. The secret itself is shown once and never stored. */
export const ApiKey = Schema.Struct({
  /** Names the key in listings, logs and on the bus, where it is the tenant. Not secret. */
  id: Schema.NonEmptyString,
  name: Schema.NonEmptyString,
  createdAt: Schema.DateTimeUtcFromString,
  /** `null` for a key that does not expire. */
  expiresAt: Schema.NullOr(Schema.DateTimeUtcFromString),
  disabled: Schema.Boolean
})
export type ApiKey = typeof ApiKey.Type

const random = (length: number): string => {
  let text = ""
  for (let index = 0; index < length; index++) text += alphabet[randomInt(alphabet.length)]
  return text
}

export const generateSecret = Effect.sync(() => Redacted.make(prefix + random(secretLength)))

/** A new record. Ids are 12 base62 characters. */
export const make = Effect.fnUntraced(function*(options: {
  readonly name: string
  readonly expiresAt: DateTime.Utc | null
}) {
  return {
    id: `key_${random(12)}`,
    name: options.name,
    createdAt: yield* DateTime.now,
    expiresAt: options.expiresAt,
    disabled: false
  } satisfies ApiKey
})

/** SHA-256 in hex: under this a key is stored. A key has 190 bits of entropy, so a slow hash would add nothing. */
export const fingerprint = (secret: string): string => hash("sha256", secret, "hex")
