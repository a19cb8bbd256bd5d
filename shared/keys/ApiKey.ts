/** What an API key is, how one is made, and how it is recognised without being stored. */
import { DateTime, Effect, Redacted, Schema } from "effect"
import { hash, randomInt } from "node:crypto"
import { defaults, KeySettings, or } from "./KeySettings.ts"

const prefix = "sk-gw-"
const secretLength = 32
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** The shape of every key: `sk-gw-` and 32 base62 characters. */
export const secretPattern = /^sk-gw-[0-9A-Za-z]{32}$/

/** What is kept of a key. The secret itself is shown once and never stored. */
export const ApiKey = Schema.Struct({
  /** Names the key in listings, logs and on the bus, where it is the tenant. Not secret. */
  id: Schema.NonEmptyString,
  createdAt: Schema.DateTimeUtcFromString,
  /** `null` for one that is as it was made. */
  editedAt: or(Schema.NullOr(Schema.DateTimeUtcFromString), null),
  ...KeySettings.fields
})
export type ApiKey = typeof ApiKey.Type

const random = (length: number): string => {
  let text = ""
  for (let index = 0; index < length; index++) text += alphabet[randomInt(alphabet.length)]
  return text
}

export const generateSecret = Effect.sync(() => Redacted.make(prefix + random(secretLength)))

/** What a new key is made from. */
export type NewKey = Pick<KeySettings, "name"> & Partial<KeySettings>

/** A new record. Ids are 12 base62 characters. */
export const make = Effect.fnUntraced(function*(settings: NewKey) {
  return {
    ...defaults,
    ...settings,
    id: `key_${random(12)}`,
    createdAt: yield* DateTime.now,
    editedAt: null
  } satisfies ApiKey
})

/** SHA-256 in hex: under this a key is stored. A key has 190 bits of entropy, so a slow hash would add nothing. */
export const fingerprint = (secret: string): string => hash("sha256", secret, "hex")

/** Whether a key may ask for a model. */
export const allows = ({ allowedModels }: Pick<KeySettings, "allowedModels">, model: string): boolean =>
  allowedModels.some((pattern) => pattern.endsWith("*") ? model.startsWith(pattern.slice(0, -1)) : model === pattern)
