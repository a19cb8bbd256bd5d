/** The settings of an API key. Imports nothing from Node, because the console's pages use it too. */
import { DateTime, Effect, Option, Record, Schema, Struct } from "effect"
import { atLeast, integer } from "../contract/Fields.ts"
import { PriorityClass } from "../contract/PriorityClass.ts"

/** A field with a default, for records from before the field existed. */
export const withDefault = <S extends Schema.Constraint>(schema: S, value: S["Type"]) =>
  Schema.withDecodingDefaultTypeKey<S>(Effect.succeed(value))(schema)

const Limit = Schema.NullOr(atLeast(1))

/** A model's name, or a prefix and `*`. */
export const ModelPattern = Schema.String.check(
  Schema.isPattern(/^[^\s*]+\*?$|^\*$/u, { expected: "a model's name, or the beginning of one and a *" })
)

/** A date, and optionally a time. */
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

/** The purpose of the key. */
const name = Schema.NonEmptyString.check(Schema.isMaxLength(200))

const setting = <S extends Schema.Constraint>(schema: S, fallback: S["Type"]) => ({
  schema,
  fallback,
  stored: withDefault(schema, fallback)
})

/** All settings but the name, each with the value that a new key gets by default. */
const settings = {
  /** `null` for a key that does not expire. */
  expiresAt: setting(Schema.NullOr(Moment), null),
  disabled: setting(Schema.Boolean, false),
  /** The models that the key may use, as names or as `prefix*`. */
  allowedModels: setting(Schema.NonEmptyArray(ModelPattern), ["*"]),
  /** Limits hold across all ingress processes; `null` for none. */
  requestsPerMinute: setting(Limit, null),
  /** Input and output together. */
  tokensPerMinute: setting(Limit, null),
  /** Requests whose answer has not ended. */
  concurrentRequests: setting(Limit, null),
  /** Lines of batches that run at once, which do not count as concurrent requests. */
  batchConcurrency: setting(atLeast(1), 32),
  /** Decides which requests in a queue go first. */
  priorityClass: setting(PriorityClass, "standard"),
  /** The key's share of turns within its class, relative to the weights of other keys. */
  weight: setting(integer(1, 100), 1),
  /** US dollars per calendar month (UTC); `null` for no budget. */
  monthlyBudgetUsd: setting(Schema.NullOr(Schema.Finite.check(Schema.isGreaterThan(0))), null)
}

type Settings = typeof settings

const each = <Part extends keyof Settings["weight"]>(part: Part) =>
  Record.map(settings, (setting) => setting[part]) as { readonly [Name in keyof Settings]: Settings[Name][Part] }

/** The settings of a new key unless specified. */
export const defaults = each("fallback")

export const KeySettings = Schema.Struct({ name, ...each("stored") })
export type KeySettings = typeof KeySettings.Type

/** The settings that an edit changes. */
export const KeyChanges = Schema.Struct({ name, ...each("schema") }).mapFields(Struct.map(Schema.optionalKey))
export type KeyChanges = typeof KeyChanges.Type
