/** The settings of an API key. Imports nothing from Node, because the console's pages use it too. */
import { DateTime, Effect, Option, Record, Schema, Struct } from "effect"
import { atLeast, integer } from "../contract/Fields.ts"
import { PriorityClass } from "../contract/PriorityClass.ts"

/** A field with a default, for records from before the field existed. */
export const withDefault = <S extends Schema.Constraint>(schema: S, value: S["Type"]) =>
  Schema.withDecodingDefaultTypeKey<S>(Effect.succeed(value))(schema)

/** `null` for no limit. */
export const Limit = Schema.NullOr(atLeast(1))

/** US dollars per calendar month (UTC); `null` for no budget. */
export const Budget = Schema.NullOr(Schema.Finite.check(Schema.isGreaterThan(0)))

/** The id of a team: see `shared/teams`. */
export const TeamId = Schema.String.check(
  Schema.isPattern(/^team_\w{1,64}$/, { expected: "the id of a team, such as team_4fJ2kQz8sT1a" })
)

/** A model's name, or a prefix and `*`. */
export const ModelPattern = Schema.String.check(
  Schema.isPattern(/^[^\s*]+\*?$|^\*$/u, { expected: "a model's name, or the beginning of one and a *" })
)
export const AllowedModels = Schema.NonEmptyArray(ModelPattern)

/** An ISO 8601 date, optionally with a time. */
const day = /^((?:\d{4}|\+\d{6})-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?$/

const isMoment = (text: string): boolean => {
  const [, date = ""] = day.exec(text) ?? []
  return Option.exists(DateTime.make(date), (at) => DateTime.formatIso(at).startsWith(date))
}

const aMoment = { expected: "a date such as 2027-01-31 or 2027-01-31T12:00:00Z" }

/** Stricter than JavaScript's `Date`, which reads `12` as a day in 2001 and 31 February as a day in March. */
const Moment = Schema.String.check(
  Schema.makeFilter(isMoment, { ...aMoment, toJsonSchema: () => ({ pattern: day.source }) })
).pipe(
  Schema.decodeTo(Schema.DateTimeUtcFromString.annotate(aMoment))
)

/** The purpose of a key, or of a team. */
export const Name = Schema.NonEmptyString.check(Schema.isMaxLength(200))

/** A setting with its default, for new records and for records from before the setting existed. */
export const setting = <S extends Schema.Constraint>(schema: S, fallback: S["Type"]) => ({
  schema,
  fallback,
  stored: withDefault(schema, fallback)
})

/** A part of each setting, such as all defaults. */
export const eachOf = <Part extends string, S extends { readonly [name: string]: { readonly [P in Part]: unknown } }>(
  settings: S,
  part: Part
) => Record.map(settings, (setting) => setting[part]) as { readonly [Name in keyof S]: S[Name][Part] }

/** All settings but the name, each with the value that a new key gets by default. */
const settings = {
  /** `null` for a key that does not expire. */
  expiresAt: setting(Schema.NullOr(Moment), null),
  disabled: setting(Schema.Boolean, false),
  /** The models that the key may use, as names or as `prefix*`. */
  allowedModels: setting(AllowedModels, ["*"]),
  /** Limits hold across all ingress processes; `null` for none. */
  requestsPerMinute: setting(Limit, null),
  /** Input and output together. */
  tokensPerMinute: setting(Limit, null),
  /** Requests whose answers have not ended. */
  concurrentRequests: setting(Limit, null),
  /** How many lines of batches run concurrently. They do not count as concurrent requests. */
  batchConcurrency: setting(atLeast(1), 32),
  /** Requests of a more urgent class go first in a queue. */
  priorityClass: setting(PriorityClass, "standard"),
  /** The key's share of turns within its class, relative to the weights of other keys. */
  weight: setting(integer(1, 100), 1),
  /** US dollars per calendar month (UTC); `null` for no budget. */
  monthlyBudgetUsd: setting(Budget, null),
  /** The key's team; `null` for none. Its limits, budget and models apply too, and those of the teams above it. */
  team: setting(Schema.NullOr(TeamId), null)
}

/** The default settings of a new key. */
export const defaults = eachOf(settings, "fallback")

export const KeySettings = Schema.Struct({ name: Name, ...eachOf(settings, "stored") })
export type KeySettings = typeof KeySettings.Type

/** The settings that an edit changes. */
export const KeyChanges = Schema.Struct({ name: Name, ...eachOf(settings, "schema") }).mapFields(
  Struct.map(Schema.optionalKey)
)
export type KeyChanges = typeof KeyChanges.Type

/** The settings of a new key. Those left out are the defaults of its team, or else the usual ones. */
export const NewKeySettings = Schema.Struct({ ...KeyChanges.fields, name: Name })
export type NewKeySettings = typeof NewKeySettings.Type

/** The settings for which a team may set defaults. */
export const KeyDefaults = KeyChanges.mapFields(Struct.omit(["name", "expiresAt", "disabled", "team"]))
export type KeyDefaults = typeof KeyDefaults.Type
