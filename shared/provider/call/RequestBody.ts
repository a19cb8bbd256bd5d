/** Decodes a call's request body for built-in engines and translations. */
import { Effect, Schema } from "effect"
import * as SchemaJITCompiler from "effect/schema/SchemaJITCompiler"
import * as Form from "../../bounds/Form.ts"
import { InvalidRequest } from "../../contract/JobError.ts"
import * as SchemaErrors from "../../contract/SchemaErrors.ts"
import * as Json from "../json/Json.ts"
import type { Call } from "./Protocol.ts"
import * as Turns from "../../bounds/Turns.ts"

const text = new TextDecoder()

export interface RequestBody<Request> {
  /** The body with all fields, including those unknown to the schema. */
  readonly json: unknown
  readonly request: Request
}

/** The error for a body that is not what ingress has checked. */
export const unreadable = () =>
  new InvalidRequest({ message: "The request body cannot be read", param: null, code: "invalid_value" })

/** Waits for a turn of the event loop if the body is large. */
export const turnFor = ({ body }: Pick<Call, "body">): Effect.Effect<void> => Turns.turnFor(body.length)

/**
 * Decodes the JSON body of calls by this schema. `parse` returns `undefined` for a text that is not JSON. Fails with the first field
 * that the schema rejects.
 */
export const reader = <Request>(
  schema: Schema.Codec<Request, unknown>,
  parse: (text: string) => unknown = Json.parse
): (call: Pick<Call, "body">) => Effect.Effect<RequestBody<Request>, InvalidRequest> => {
  // compiled to code on first use, which decodes three times as fast
  SchemaJITCompiler.enable(schema.ast)
  const decode = Schema.decodeUnknownEffect(schema)
  const decoded = (json: unknown) =>
    Effect.mapBoth(decode(json), {
      onSuccess: (request) => ({ json, request }),
      onFailure: ({ issue }) => SchemaErrors.toInvalidRequest(issue, json)
    })
  return (call) => {
    if (call.body.length <= Turns.smallBytes) return Effect.suspend(() => decoded(parse(text.decode(call.body))))
    const turn = turnFor(call)
    return Effect.gen(function*() {
      yield* turn
      const characters = text.decode(call.body)
      yield* turn
      const json = parse(characters)
      yield* turn
      return yield* decoded(json)
    })
  }
}

export const decoder = <Request>(
  schema: Schema.Codec<Request, unknown>
): (call: Call) => Effect.Effect<Request, InvalidRequest> => {
  const read = reader(schema)
  return (call) => Effect.map(read(call), ({ request }) => request)
}

export const isForm = ({ contentType }: Pick<Call, "contentType">): boolean =>
  /^multipart\/form-data\s*;/i.test(contentType)

/** Decodes forms by this schema. Fails with the first field that it rejects. */
export const formReader = <Request>(
  schema: Schema.Codec<Request, FormData>
): (form: FormData) => Effect.Effect<Request, InvalidRequest> => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (form) => Effect.mapError(decode(form), ({ issue }) => SchemaErrors.toInvalidRequest(issue, form))
}

/** The fields of a form. */
export const formOf = (
  { body, contentType }: Pick<Call, "body" | "contentType">
): Effect.Effect<FormData, InvalidRequest> => Effect.mapError(Form.read(contentType, body), unreadable)
