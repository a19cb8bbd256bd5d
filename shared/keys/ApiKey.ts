/** API keys: their records, how they are made, and how they are recognised without being stored. */
import { DateTime, Effect, Redacted, Schema } from "effect"
import { hash } from "node:crypto"
import * as Base62 from "./Base62.ts"
import { defaults, KeySettings, withDefault } from "./KeySettings.ts"

/** The shape of every key: `sk-gw-` and 32 base62 characters. */
export const secretPattern = /^sk-gw-[0-9A-Za-z]{32}$/

/** The stored record of a key. The secret itself is shown once and never stored. */
export const ApiKey = Schema.Struct({
  /** Identifies the key in listings, logs and on the bus, where it is the tenant. Not secret. */
  id: Schema.NonEmptyString,
  /** Owns what requests with the key store. The key's id, or for a replacement the owner of the replaced key. */
  owner: Schema.NonEmptyString,
  createdAt: Schema.DateTimeUtcFromString,
  /** `null` if never edited. */
  editedAt: withDefault(Schema.NullOr(Schema.DateTimeUtcFromString), null),
  ...KeySettings.fields
})
export type ApiKey = typeof ApiKey.Type

export const generateSecret = Effect.sync(() => Redacted.make(`sk-gw-${Base62.random(32)}`))

export type NewKey = Pick<KeySettings, "name"> & Partial<KeySettings>

/** A new record, by default with an owner of its own. Ids are 12 base62 characters. */
export const make = Effect.fnUntraced(function*(settings: NewKey, owner?: string) {
  const id = `key_${Base62.random(12)}`
  return {
    ...defaults,
    ...settings,
    id,
    owner: owner ?? id,
    createdAt: yield* DateTime.now,
    editedAt: null
  } satisfies ApiKey
})

/** SHA-256 in hex, under which a key is stored. A key has 190 bits of entropy, so a slow hash would add nothing. */
export const fingerprint = (secret: string): string => hash("sha256", secret, "hex")

export const allows = ({ allowedModels }: Pick<KeySettings, "allowedModels">, model: string): boolean =>
  allowedModels.some((pattern) => pattern.endsWith("*") ? model.startsWith(pattern.slice(0, -1)) : model === pattern)
