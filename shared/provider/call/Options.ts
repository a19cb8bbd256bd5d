/** Decodes the catalogue's options of a provider by the schema of its protocol. */
import { Effect, Schema } from "effect"
import { InternalError } from "../../contract/JobError.ts"
import * as SchemaErrors from "../../contract/SchemaErrors.ts"
import type { Endpoint } from "../transport/Endpoint.ts"

/** Makes a function that decodes options. Logs mistakes; the client gets only an internal error, since it cannot correct the catalogue. */
export const reader = <Options>(
  schema: Schema.Codec<Options, unknown>
): (endpoint: Endpoint) => Effect.Effect<Options, InternalError> => {
  // an error: a misspelt option must not be ignored silently
  const decode = Schema.decodeUnknownEffect(schema, { onExcessProperty: "error" })
  return ({ name, provider }) =>
    decode(provider.options ?? {}).pipe(
      Effect.tapError(({ issue }) => {
        const { message, path } = SchemaErrors.first(issue, provider.options)
        return Effect.logError(
          `${SchemaErrors.formatPath(["providers", name, "options", ...path])} in the catalogue ${message}`
        )
      }),
      Effect.mapError(() => new InternalError())
    )
}
