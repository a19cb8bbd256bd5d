/** Decodes the requests of operations from JSON values and from forms. */
import { Predicate, Result, Schema } from "effect"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"
import type { InvalidRequest } from "../JobError.ts"
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

const jsonDecoder = ({ alternative, dialect, request }: Contract.Operation): Decoder => {
  const usual = compiled(dialect === "gemini" ? inEitherSpelling(request) : request)
  if (alternative === undefined) return usual
  const { has, lacks } = alternative
  const other = compiled(alternative.request)
  return (value) => (Predicate.hasProperty(value, has) && !Predicate.hasProperty(value, lacks) ? other : usual)(value)
}

/** Decodes a request. The error's `param` is the path of the first wrong field. */
export type Decode = (value: unknown) => Result.Result<Contract.RequestBody, InvalidRequest>

const validating = (decoder: Decoder): Decode => (value) =>
  Result.mapError(decoder(value), ({ issue }) => SchemaErrors.toInvalidRequest(issue, value))

interface Decoders {
  readonly json: Decode
  /** Decodes a form. Absent if the operation accepts none. */
  readonly form?: Decode
}

const decoders = new Map(
  operations.map((operation): [string, Decoders] => {
    const { form, name } = operation
    const json = validating(jsonDecoder(operation))
    return [name, form === undefined ? { json } : { json, form: validating(Schema.decodeUnknownResult(form)) }]
  })
)

export const decoderOf = ({ name }: Contract.Operation): Decoders => {
  const found = decoders.get(name)
  if (found === undefined) throw new Error(`no decoder for ${name}`)
  return found
}
