/** The request of a call as a built-in engine reads it. */
import { Effect, Schema } from "effect"
import { InvalidRequest } from "../../contract/JobError.ts"
import type { Call } from "../Protocol.ts"

const text = new TextDecoder()

/** Decodes the JSON body of calls by this schema. Ingress has done so already, so that failures are not described. */
export const decoder = <Request>(
  schema: Schema.Codec<Request, unknown>
): (call: Call) => Effect.Effect<Request, InvalidRequest> => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))
  return (call) =>
    Effect.mapError(
      Effect.suspend(() => decode(text.decode(call.body))),
      () => new InvalidRequest({ message: "The body cannot be read", param: null, code: "invalid_value" })
    )
}
