/** The settings of an API key. Imports nothing from Node, because the console's pages use it too. */
import { DateTime, Effect, Option, Schema, Struct } from "effect"
import { atLeast, integer } from "../contract/Fields.ts"
import { PriorityClass } from "../contract/PriorityClass.ts"

/** A field with a default, for records from before the field existed. */
export const withDefault = <S extends Schema.Constraint>(schema: S, value: S["Type"]) =>
  Schema.withDecodingDefaultTypeKey<S>(Effect.succeed(value))(schema)

const Limit = Schema.NullOr(atLeast(1))

/** A model's name, or a prefix and `*`. */
const ModelPattern = Schema.String.check(
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

const fields = {
  /** The purpose of the key. */
  name: Schema.NonEmptyString.check(Schema.isMaxLength(200)),
  /** `null` for a key that does not expire. */
  expiresAt: Schema.NullOr(Moment),
  disabled: Schema.Boolean,
  /** The models that the key may use, as names or as `prefix*`. */
  allowedModels: Schema.NonEmptyArray(ModelPattern),
  /** Limits hold across all ingress processes; `null` for none. */
  requestsPerMinute: Limit,
  /** Input and output together. */
  tokensPerMinute: Limit,
  /** Requests whose answer has not ended. */
  concurrentRequests: Limit,
  /** Decides which requests in a queue go first. */
  priorityClass: PriorityClass,
  /** The key's share of turns within its class, relative to the weights of other keys. */
  weight: integer(1, 100),
  /** US dollars per calendar month (UTC); `null` for no budget. */
  monthlyBudgetUsd: Schema.NullOr(Schema.Finite.check(Schema.isGreaterThan(0)))
}

/** The settings of a new key unless specified. */
export const defaults = {
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

/** All settings but the name are optional. */
export const KeySettings = Schema.Struct({
  name: fields.name,
  expiresAt: withDefault(fields.expiresAt, defaults.expiresAt),
  disabled: withDefault(fields.disabled, defaults.disabled),
  allowedModels: withDefault(fields.allowedModels, defaults.allowedModels),
  requestsPerMinute: withDefault(fields.requestsPerMinute, defaults.requestsPerMinute),
  tokensPerMinute: withDefault(fields.tokensPerMinute, defaults.tokensPerMinute),
  concurrentRequests: withDefault(fields.concurrentRequests, defaults.concurrentRequests),
  priorityClass: withDefault(fields.priorityClass, defaults.priorityClass),
  weight: withDefault(fields.weight, defaults.weight),
  monthlyBudgetUsd: withDefault(fields.monthlyBudgetUsd, defaults.monthlyBudgetUsd)
})
export type KeySettings = typeof KeySettings.Type

/** The settings that an edit changes. */
export const KeyChanges = Schema.Struct(fields).mapFields(Struct.map(Schema.optionalKey))
export type KeyChanges = typeof KeyChanges.Type
