/** The secrets that the catalogue names: values of environment variables and contents of files. */
import { Clock, Effect, Option, Redacted } from "effect"
import { readFile } from "node:fs/promises"
import * as SecretReference from "../catalogue/SecretReference.ts"

type Secret = Option.Option<Redacted.Redacted>

const of = (value: string | undefined): Secret =>
  value === undefined || value === "" ? Option.none() : Option.some(Redacted.make(value))

/** How long the content of a file is believed, in milliseconds: a key that was changed there is in use soon after. */
const believedMs = 10_000

const files = new Map<string, { readonly secret: Secret; readonly readAt: number }>()

const fromFile = (path: string): Effect.Effect<Secret> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) => {
    const known = files.get(path)
    if (known !== undefined && now - known.readAt < believedMs) return Effect.succeed(known.secret)
    return Effect.tryPromise(() => readFile(path, "utf8")).pipe(
      Effect.orElseSucceed(() => ""),
      Effect.map((content) => {
        const secret = of(content.trim())
        files.set(path, { secret, readAt: now })
        return secret
      })
    )
  })

/** The value of a secret; `None` where it names a variable that is not set or a file that cannot be read. */
export const resolve = (text: string, environment: NodeJS.ProcessEnv = process.env): Effect.Effect<Secret> => {
  const reference = SecretReference.parse(text)
  switch (reference.kind) {
    case "literal":
      return Effect.succeed(of(text))
    case "variable":
      return Effect.succeed(of(environment[reference.name]))
    case "file":
      return fromFile(reference.path)
  }
}
