/** API keys: the format of their records, how secrets are generated, and how they are recognised without being stored. */
import { Config, DateTime, Effect, Redacted, Schema } from "effect"
import { hash } from "node:crypto"
import * as Base62 from "./Base62.ts"
import { defaults, KeySettings, withDefault } from "./KeySettings.ts"

/** The shape of a key's secret: a prefix of up to 32 characters, and 32 base62 characters. */
export const secretPattern = /^[\w-]{0,32}[0-9A-Za-z]{32}$/

/** `secretPattern` in words, for error messages. */
export const secretShape = "32 letters or digits, after a prefix of at most 32 letters, digits, hyphens and underscores"

/** Reads `GATEWAY_KEY_PREFIX`: the prefix of new keys, up to 32 letters, digits, `-` and `_` (default `sk-gw-`). */
export const keyPrefix = Config.schema(
  Schema.String.check(
    Schema.isPattern(/^[\w-]{0,32}$/, { expected: "at most 32 letters, digits, hyphens and underscores" })
  ),
  "GATEWAY_KEY_PREFIX"
).pipe(Config.withDefault("sk-gw-"))

/** The stored record of a key. The secret itself is shown once and never stored. */
export const ApiKey = Schema.Struct({
  /** Identifies the key in listings, logs and on the bus, where it is the tenant. Not secret. */
  id: Schema.NonEmptyString,
  /** The owner of everything that requests with the key store: the key's id, or for a replacement the owner of the replaced key. */
  owner: Schema.NonEmptyString,
  createdAt: Schema.DateTimeUtcFromString,
  /** `null` if never edited. */
  editedAt: withDefault(Schema.NullOr(Schema.DateTimeUtcFromString), null),
  ...KeySettings.fields
})
export type ApiKey = typeof ApiKey.Type

/** The secret of a new key with this prefix. */
export const generateSecret = (prefix: string) => Effect.sync(() => Redacted.make(`${prefix}${Base62.random(32)}`))

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

/** Whether another key has replaced this one: it has the same owner, so that the webhook stays. */
export const isReplaced = ({ id, owner }: ApiKey, keys: ReadonlyArray<ApiKey>): boolean =>
  keys.some((key) => key.owner === owner && key.id !== id)
