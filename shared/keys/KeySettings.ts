/**
 * What whoever runs the gateway decides about an API key. Imports nothing of Node: the console's pages read it too.
 */
import { DateTime, Effect, Option, Schema, Struct } from "effect"
import { atLeast, integer } from "../contract/Fields.ts"
import { PriorityClass } from "../contract/PriorityClass.ts"

/** A field that is filled in where it is not there, as in records from before there was such a field. */
export const or = <S extends Schema.Constraint>(schema: S, value: S["Type"]) =>
  Schema.withDecodingDefaultTypeKey<S>(Effect.succeed(value))(schema)

const Limit = Schema.NullOr(atLeast(1))

/** A model's name, or the beginning of names and a star. */
const ModelPattern = Schema.String.check(
  Schema.isPattern(/^[^\s*]+\*?$|^\*$/u, { expected: "a model's name, or the beginning of one and a *" })
)

/** A day that there is, and a time of it where one is given. */
const day = /^((?:\d{4}|\+\d{6})-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)?$/

const isMoment = (text: string): boolean => {
  const [, date = ""] = day.exec(text) ?? []
  return Option.exists(DateTime.make(date), (at) => DateTime.formatIso(at).startsWith(date))
}

const aMoment = { expected: "a date such as 2027-01-31 or 2027-01-31T12:00:00Z" }

/** The platform reads much more than this as a date: `12` is in 2001, the 31st of February in March. */
const Moment = Schema.String.check(
  Schema.makeFilter(isMoment, { ...aMoment, toJsonSchema: () => ({ pattern: day.source }) })
).pipe(
  Schema.decodeTo(Schema.DateTimeUtcFromString.annotate(aMoment))
)

const fields = {
  /** What the key is for. */
  name: Schema.NonEmptyString.check(Schema.isMaxLength(200)),
  /** `null` for a key that does not expire. */
  expiresAt: Schema.NullOr(Moment),
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
  weight: integer(1, 100),
  /** What may be spent in a calendar month (UTC), in US dollars; `null` for no budget. */
  monthlyBudgetUsd: Schema.NullOr(Schema.Finite.check(Schema.isGreaterThan(0)))
}

/** What holds for a new key where nothing is said. */
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
