/** The catalogue's options of a provider, as its protocol reads them. */
import { Effect, Schema } from "effect"
import { InternalError } from "../../contract/JobError.ts"
import * as Mistake from "../../contract/Mistake.ts"
import type { Endpoint } from "../transport/Endpoint.ts"

/** A mistake in the catalogue is told in the log and not to the client, who can do nothing about it. */
export const reader = <Options>(
  schema: Schema.Codec<Options, unknown>
): (endpoint: Endpoint) => Effect.Effect<Options, InternalError> => {
  // a misspelt option would otherwise be a setting that silently does nothing
  const decode = Schema.decodeUnknownEffect(schema, { onExcessProperty: "error" })
  return ({ name, provider }) =>
    decode(provider.options ?? {}).pipe(
      Effect.tapError(({ issue }) => {
        const { message, path } = Mistake.first(issue, provider.options)
        return Effect.logError(`${Mistake.place(["providers", name, "options", ...path])} in the catalogue ${message}`)
      }),
      Effect.mapError(() => new InternalError())
    )
}
