/** What an API key is, how one is made, and how it is recognised without being stored. */
import { DateTime, Effect, Redacted, Schema, Struct } from "effect"
import { hash, randomInt } from "node:crypto"
import { PriorityClass } from "../contract/PriorityClass.ts"

const prefix = "sk-gw-"
const secretLength = 32
const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** The shape of every key: `sk-gw-` and 32 base62 characters. */
export const secretPattern = /^sk-gw-[0-9A-Za-z]{32}$/

/** A field that is filled in where it is not there, as in records from before there was such a field. */
const or = <S extends Schema.Constraint>(schema: S, value: S["Type"]) =>
  Schema.withDecodingDefaultTypeKey<S>(Effect.succeed(value))(schema)

const Limit = Schema.NullOr(Schema.Int.check(Schema.isGreaterThan(0)))

/** A model's name, or the beginning of names and a star. */
const ModelPattern = Schema.String.check(
  Schema.isPattern(/^[^\s*]+\*?$|^\*$/, { expected: "a model's name, or the beginning of one and a *" })
)

const fields = {
  name: Schema.NonEmptyString,
  /** `null` for a key that does not expire. */
  expiresAt: Schema.NullOr(Schema.DateTimeUtcFromString),
  disabled: Schema.Boolean,
  /** The models that it may ask for, as names or as `prefix*`. */
  allowedModels: Schema.NonEmptyArray(ModelPattern),
  /** Limits hold over all ingress processes together; `null` for none. */
  requestsPerMinute: Limit,
  /** Input and output together. */
  tokensPerMinute: Limit,
  /** Requests that have not been answered to their end. */
  concurrentRequests: Limit,
  /** Which requests go first where a queue forms. */
  priorityClass: PriorityClass,
  /** The key's share of the turns within its class, beside the weights of the others. */
  weight: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 })),
  /** What may be spent in a calendar month (UTC), in US dollars; `null` for no budget. */
  monthlyBudgetUsd: Schema.NullOr(Schema.Finite.check(Schema.isGreaterThan(0)))
}

const defaults = {
  expiresAt: null,
  disabled: false,
  allowedModels: ["*"],
  requestsPerMinute: null,
  tokensPerMinute: null,
  concurrentRequests: null,
  priorityClass: "standard",
  weight: 1,
  monthlyBudgetUsd: null
} as const

/** What whoever runs the gateway decides about a key. All but the name may be left out. */
export const KeySettings = Schema.Struct({
  name: fields.name,
  expiresAt: or(fields.expiresAt, defaults.expiresAt),
  disabled: or(fields.disabled, defaults.disabled),
  allowedModels: or(fields.allowedModels, defaults.allowedModels),
  requestsPerMinute: or(fields.requestsPerMinute, defaults.requestsPerMinute),
  tokensPerMinute: or(fields.tokensPerMinute, defaults.tokensPerMinute),
  concurrentRequests: or(fields.concurrentRequests, defaults.concurrentRequests),
  priorityClass: or(fields.priorityClass, defaults.priorityClass),
  weight: or(fields.weight, defaults.weight),
  monthlyBudgetUsd: or(fields.monthlyBudgetUsd, defaults.monthlyBudgetUsd)
})
export type KeySettings = typeof KeySettings.Type

/** Some of the settings, for a key that is edited. */
export const KeyChanges = Schema.Struct(fields).mapFields(Struct.map(Schema.optionalKey))
export type KeyChanges = typeof KeyChanges.Type

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
