/** Decodes the flags of a command by a schema. Every error names its flag. */
import { Effect, Schema } from "effect"
import * as SchemaErrors from "../../shared/contract/SchemaErrors.ts"

/** A flag, argument or environment variable of a command is missing or invalid. */
export class InvalidInput extends Schema.TaggedError<InvalidInput>()("InvalidInput", { message: Schema.String }) {}

/**
 * Returns a decoder of flags. `names` maps a field of the schema to its flag if their names differ. The flags of the fields in
 * `orNone` may also be `none`, which the caller decodes.
 */
export const flagDecoder = <A>(
  schema: Schema.Codec<A, unknown>,
  names: Readonly<Record<string, string>> = {},
  orNone: ReadonlySet<string> = new Set()
) => {
  const decode = Schema.decodeUnknownEffect(schema, { errors: "all" })
  const flagOf = ([field = ""]: SchemaErrors.SchemaError["path"]): string =>
    `--${names[String(field)] ?? String(field)}`
  return (flags: Readonly<Record<string, unknown>>): Effect.Effect<A, InvalidInput> =>
    Effect.mapError(decode(flags), ({ issue }) => {
      const lines = SchemaErrors.all(issue, flags).map(({ message, path }) =>
        `${flagOf(path)}: ${message}${orNone.has(String(path[0])) ? ", or none" : ""}`
      )
      return new InvalidInput({ message: [...new Set(lines)].join("\n") })
    })
}
