/** The secrets that the catalogue names: values of environment variables and contents of files. */
import { Clock, Effect, Option, Redacted } from "effect"
import { readFile } from "node:fs/promises"
import * as SecretReference from "../catalogue/SecretReference.ts"

type Secret = Option.Option<Redacted.Redacted>

const of = (value: string | undefined): Secret =>
  value === undefined || value === "" ? Option.none() : Option.some(Redacted.make(value))

const lasting = new Map<string, Secret>()

/** For one that never changes. Made once: the registry of all that is redacted holds it weakly, which keeps the GC busy. */
const ofLasting = (value = ""): Secret => {
  let secret = lasting.get(value)
  if (secret === undefined) lasting.set(value, secret = of(value))
  return secret
}

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
      return Effect.succeed(ofLasting(text))
    case "variable":
      return Effect.succeed(ofLasting(environment[reference.name]))
    case "file":
      return fromFile(reference.path)
  }
}
