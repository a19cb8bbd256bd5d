/** Schemas of fields that several requests and answers share, and helpers to define fields. */
import { Schema, Struct } from "effect"

/** A field, with its description in the reference. */
export const field = <S extends Schema.Top>(schema: S, description: string): S["Rebuild"] =>
  schema.annotateKey({ description })

/** An optional field; `absent`: the value that its absence stands for. Accepts `null`, which some clients send for an absent field. */
export const optional = <S extends Schema.Constraint>(schema: S, description?: string, absent?: S["Type"]) =>
  Schema.optionalKey(Schema.NullOr(schema)).annotateKey({ description, default: absent })

/** A field that always has this value. `description`: what the value says about the object. */
export const constant = <const Value extends string | boolean>(value: Value, description: string) =>
  field(Schema.Literal(value), description)

/** A number of tokens in an answer. */
export const tokens = (description: string) => field(Schema.Int, description)

/** A finite number; both bounds are included. */
export const between = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))

/** An integer; both bounds are included. */
export const integer = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** An integer of at least `minimum`. */
export const atLeast = (minimum: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum))

/** An object that only the provider interprets. */
export const JsonObject = Schema.Record(Schema.String, Schema.Unknown)

/** Any integer of 64 bits, signed or not: more than `Schema.Int` allows. The number may lack its last digits; the text of the body has them. */
export const Seed = Schema.Finite.check(
  Schema.makeFilter((seed) => Number.isInteger(seed) && seed >= -(2 ** 63) && seed <= 2 ** 64, {
    expected: "an integer of at most 64 bits",
    toJsonSchema: () => ({ type: "integer" })
  })
)

/** One text or several, in one request. */
export const Texts = field(
  Schema.Union([
    Schema.NonEmptyString,
    Schema.Array(Schema.NonEmptyString).check(Schema.isBetweenLength(1, 2_048))
  ]),
  "One text or several, none of them empty. Tokens instead of texts reach only providers of this format, whose models have them."
)

/** In JSON Schema: the field is present and not `null`. */
export const isPresent = (name: string) => ({ required: [name], properties: { [name]: { not: { type: "null" } } } })

/** In JSON Schema: the field is required if the condition holds. */
// oxlint-disable-next-line unicorn/no-thenable -- `then` is a keyword of JSON Schema
export const requiredIf = (condition: object, name: string) => ({ if: condition, then: isPresent(name) })

export const ModelName = field(Schema.NonEmptyString, "Model to use, as listed by `GET /v1/models`.")

export const endUserDescription = "End-user identifier supplied by the client."
export const EndUser = optional(Schema.String, endUserDescription)

export const Stream = optional(Schema.Boolean, "Send the answer as server-sent events while it is generated.", false)

export const EpochSeconds = field(Schema.Int, "When the answer was made: Unix time in seconds.")

export const AnsweringModel = field(Schema.String, "Model that answered; another than requested after a fallback.")

/** A mark at the end of a prefix that may be cached, such as `{"type": "ephemeral"}`. */
export const cacheControl = {
  cache_control: optional(JsonObject, "Marks the end of a prefix that the provider may cache. Only it interprets this.")
}

interface FormField extends Struct.Lambda {
  <S extends Schema.Constraint>(schema: S): Schema.optionalKey<Schema.toCodecStringTree<S>>
  readonly "~lambda.out": Schema.optionalKey<Schema.toCodecStringTree<Extract<this["~lambda.in"], Schema.Constraint>>>
}
/** Turns the schema of a field into that of an optional field of a form, whose value is a text. */
export const formField = Struct.lambda<FormField>((schema) => Schema.optionalKey(Schema.toCodecStringTree(schema)))

/** A file of a form. */
export const formFile = Schema.instanceOf(File, { expected: "a file" })
