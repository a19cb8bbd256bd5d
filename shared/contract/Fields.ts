/** Fields that several requests and answers share. */
import { Schema } from "effect"

/** An optional field. Some clients send `null` instead of leaving it out. */
export const optional = <S extends Schema.Constraint>(schema: S, description?: string) => {
  const field = Schema.optionalKey(Schema.NullOr(schema))
  return description === undefined ? field : field.annotateKey({ description })
}

/** A finite number; both bounds are included. */
export const between = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))

/** An integer; both bounds are included. */
export const integer = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** An integer. */
export const atLeast = (minimum: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum))

/** An object that only the provider interprets. */
export const JsonObject = Schema.Record(Schema.String, Schema.Unknown)

/** One text or several, in one request. */
export const Texts = Schema.Union([
  Schema.NonEmptyString,
  Schema.Array(Schema.NonEmptyString).check(Schema.isBetweenLength(1, 2_048))
]).annotateKey({
  description: "One text or several, none of them empty. Token arrays are not supported: tokens depend on the model."
})

/** In JSON Schema: the field is present and not `null`. */
export const isPresent = (name: string) => ({ required: [name], properties: { [name]: { not: { type: "null" } } } })

/** In JSON Schema: the field is required if the condition holds. */
// oxlint-disable-next-line unicorn/no-thenable -- `then` is a keyword of JSON Schema
export const requiredIf = (condition: object, name: string) => ({ if: condition, then: isPresent(name) })

export const ModelName = Schema.NonEmptyString.annotateKey({
  description: "Model to use, as listed by `GET /v1/models`."
})

export const endUserDescription = "End-user identifier supplied by the client."
export const EndUser = optional(Schema.String, endUserDescription)

export const Stream = optional(Schema.Boolean).annotateKey({
  description: "Send the answer as server-sent events while it is generated. Default false."
})

export const EpochSeconds = Schema.Int.annotateKey({ description: "Unix time in seconds." })
