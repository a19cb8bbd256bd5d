/** Decodes the requests of operations from JSON values and from forms. */
import { Predicate, Result, Schema } from "effect"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"
import { InvalidRequest } from "../JobError.ts"
import * as SchemaErrors from "../SchemaErrors.ts"
import type * as Contract from "../Operation.ts"
import { inEitherSpelling } from "./FieldSpelling.ts"
import { operations } from "../operations/operations.ts"

type Decoder = (value: unknown) => Result.Result<Contract.RequestBody, Schema.SchemaError>

const compiled = (schema: Contract.Operation["request"]): Decoder => {
  // compiled on first use, which makes decoding three times as fast
  SchemaJITCompiler.enable(schema.ast)
  return Schema.decodeUnknownResult(schema)
}

/** Returns the request as it was sent: limits read more fields than an outline has. */
const checkedBy = (outline: Contract.Operation["request"]): Decoder => {
  const decode = compiled(outline)
  return (value) => Result.map(decode(value), () => value as Contract.RequestBody)
}

const jsonDecoder = ({ alternative, dialect, outline, request }: Contract.Operation): Decoder => {
  const inSpelling = (schema: typeof request) => dialect === "gemini" ? inEitherSpelling(schema) : schema
  const usual = outline === undefined ? compiled(inSpelling(request)) : checkedBy(inSpelling(outline))
  if (alternative === undefined) return usual
  const { has, lacks } = alternative
  const other = checkedBy(alternative.outline)
  return (value) => (Predicate.hasProperty(value, has) && !Predicate.hasProperty(value, lacks) ? other : usual)(value)
}

/** Decodes a request. The error's `param` is the path of the first wrong field. */
export type Decode = (value: unknown) => Result.Result<Contract.RequestBody, InvalidRequest>

const validating = (decoder: Decoder): Decode => (value) =>
  Result.mapError(decoder(value), ({ issue }) => SchemaErrors.toInvalidRequest(issue, value))

/** Providers that ignore case, as Go's JSON decoder does, would take such a member for the model that the key was checked for. */
const otherModelIn = (value: unknown): string | undefined =>
  Predicate.isReadonlyObject(value)
    ? Object.keys(value).find((name) => name.length === 5 && name !== "model" && name.toLowerCase() === "model")
    : undefined

const refusingOtherModels = (decode: Decode): Decode => (value) => {
  const name = otherModelIn(value)
  return name === undefined ? decode(value) : Result.fail(InvalidRequest.at(name, "must be spelt `model`"))
}

interface Decoders {
  readonly json: Decode
  /** Decodes a form. Absent if the operation accepts none. */
  readonly form?: Decode
}

const decoders = new Map(
  operations.map((operation): [string, Decoders] => {
    const { form, formOutline = form, name } = operation
    const json = refusingOtherModels(validating(jsonDecoder(operation)))
    return [
      name,
      formOutline === undefined ? { json } : { json, form: validating(Schema.decodeUnknownResult(formOutline)) }
    ]
  })
)

export const decoderOf = ({ name }: Contract.Operation): Decoders => {
  const found = decoders.get(name)
  if (found === undefined) throw new Error(`no decoder for ${name}`)
  return found
}
