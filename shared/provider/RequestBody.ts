/** The request of a call as a built-in engine or a translation reads it. */
import { Effect, Schema } from "effect"
import { InvalidRequest } from "../contract/JobError.ts"
import * as Json from "./Json.ts"
import type { Call } from "./Protocol.ts"

const text = new TextDecoder()

export interface RequestBody<Request> {
  /** With all its fields, those too that the schema does not know. */
  readonly json: unknown
  readonly request: Request
}

/** Ingress has decoded the body already, and told what was wrong with it. */
export const unreadable = () =>
  new InvalidRequest({ message: "The request body cannot be read", param: null, code: "invalid_value" })

/** Decodes the JSON body of calls by this schema. */
export const reader = <Request>(
  schema: Schema.Codec<Request, unknown>
): (call: Call) => Effect.Effect<RequestBody<Request>, InvalidRequest> => {
  const decode = Schema.decodeUnknownEffect(schema)
  return (call) =>
    Effect.suspend(() => {
      const json = Json.parse(text.decode(call.body))
      return Effect.mapBoth(decode(json), {
        onSuccess: (request) => ({ json, request }),
        onFailure: unreadable
      })
    })
}

export const decoder = <Request>(
  schema: Schema.Codec<Request, unknown>
): (call: Call) => Effect.Effect<Request, InvalidRequest> => {
  const read = reader(schema)
  return (call) => Effect.map(read(call), ({ request }) => request)
}
