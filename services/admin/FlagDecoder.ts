/** What was said on the command line as what a command needs; every mistake names its flag. */
import { Effect, Schema } from "effect"
import * as Mistake from "../../shared/contract/Mistake.ts"

class FlagsInvalid extends Schema.TaggedError<FlagsInvalid>()("FlagsInvalid", { detail: Schema.String }) {
  override get message() {
    return this.detail
  }
}

/** With the names of flags that are called otherwise than what they set. */
export const flagDecoder = <A>(schema: Schema.Codec<A, unknown>, names: Readonly<Record<string, string>> = {}) => {
  const decode = Schema.decodeUnknownEffect(schema, { errors: "all" })
  const flagOf = ([setting = ""]: Mistake.Mistake["path"]): string => `--${names[String(setting)] ?? String(setting)}`
  return (flags: Readonly<Record<string, unknown>>): Effect.Effect<A, FlagsInvalid> =>
    Effect.mapError(decode(flags), ({ issue }) => {
      const lines = Mistake.all(issue, flags).map(({ message, path }) => `${flagOf(path)}: ${message}`)
      return new FlagsInvalid({ detail: [...new Set(lines)].join("\n") })
    })
}
