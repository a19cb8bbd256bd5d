/** Decodes the catalogue's options of a provider by the schema of its protocol. */
import { Effect, Result, Schema } from "effect"
import { InternalError } from "../../contract/JobError.ts"
import * as SchemaErrors from "../../contract/SchemaErrors.ts"
import type { Endpoint } from "../transport/Endpoint.ts"

// an error: a misspelt option must not be ignored silently
const strict = { onExcessProperty: "error" } as const

/** Makes a function that finds all mistakes in options. */
export const checker = (
  schema: Schema.Codec<unknown, unknown>
): (options: unknown) => ReadonlyArray<SchemaErrors.SchemaError> => {
  const decode = Schema.decodeUnknownResult(schema, { ...strict, errors: "all" })
  return (options) =>
    Result.match(decode(options), { onFailure: ({ issue }) => SchemaErrors.all(issue, options), onSuccess: () => [] })
}

/** Makes a function that decodes options. Logs mistakes; the client gets only an internal error, since it cannot correct the catalogue. */
export const reader = <Options>(
  schema: Schema.Codec<Options, unknown>
): (endpoint: Endpoint) => Effect.Effect<Options, InternalError> => {
  const decode = Schema.decodeUnknownEffect(schema, strict)
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
