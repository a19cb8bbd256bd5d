/** Kinds of fields that many requests have. */
import { Schema } from "effect"

/** May be left out. Clients send `null` for what they leave out, so that is taken too. */
export const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** A finite number, both ends included. */
export const between = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))

/** A whole number, both ends included. */
export const integer = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** A whole number. */
export const atLeast = (minimum: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum))

/** An object whose inside is the provider's business. */
export const JsonObject = Schema.Record(Schema.String, Schema.Unknown)

/** For JSON Schema: the field is there and not `null`. */
export const given = (name: string) => ({ required: [name], properties: { [name]: { not: { type: "null" } } } })

/** For JSON Schema: the field is needed in objects of which the condition holds. */
// oxlint-disable-next-line unicorn/no-thenable -- `then` is a keyword of JSON Schema
export const neededIf = (condition: object, name: string) => ({ if: condition, then: given(name) })

/** Names the model that is to serve the request. */
export const ModelName = Schema.NonEmptyString.annotateKey({
  description: "A model of the gateway: `GET /v1/models` lists them."
})
