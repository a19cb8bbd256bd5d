/** What was said on the command line as what a command needs; every mistake is named. */
import { Effect, Schema, SchemaIssue } from "effect"

class FlagsInvalid extends Schema.TaggedError<FlagsInvalid>()("FlagsInvalid", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
}

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

const describe = ({ issue }: Schema.SchemaError): string =>
  formatIssue(issue).issues
    .map(({ message, path = [] }) => path.length === 0 ? message : `${path.map(String).join(".")}: ${message}`)
    .join("\n")

export const flagDecoder = <A>(schema: Schema.Codec<A, unknown>) => {
  const decode = Schema.decodeUnknownEffect(schema, { errors: "all" })
  return (flags: Readonly<Record<string, unknown>>): Effect.Effect<A, FlagsInvalid> =>
    Effect.mapError(decode(flags), (error) => new FlagsInvalid({ detail: describe(error) }))
}
