/** Resolves the catalogue's references to secrets: environment variables and contents of files. */
import { Clock, Config, ConfigProvider, Context, Effect, FileSystem, Layer, Option, Redacted } from "effect"
import * as SecretReference from "../../catalogue/SecretReference.ts"

/** `None` if the variable is not set, the file cannot be read, or either is empty. */
type Secret = Option.Option<Redacted.Redacted>

/** How long a file's content is cached, in milliseconds. Short, so that a rotated key is in use soon. */
const fileMs = 10_000

const isNotEmpty = (value: Redacted.Redacted): boolean => Redacted.value(value) !== ""

export class Secrets extends Context.Service<Secrets, {
  /** Resolves a reference such as `${NAME}` or `${file:/path}`. */
  readonly resolve: (reference: string) => Effect.Effect<Secret>
}>()("shared/provider/transport/Secrets") {
  /**
   * Reads each variable once, from the `ConfigProvider`. A secret is wrapped as `Redacted` when it is read, not for each use: every
   * redacted value is a weak entry in a registry, which costs the garbage collector work.
   */
  static readonly layer = Layer.effect(
    Secrets,
    Effect.gen(function*() {
      const provider = yield* ConfigProvider.ConfigProvider
      const fs = yield* FileSystem.FileSystem
      const clock = yield* Clock.Clock

      const ofVariable = (name: string): Effect.Effect<Secret> =>
        Config.Redacted(name).parse(provider).pipe(Effect.option, Effect.map(Option.filter(isNotEmpty)))

      const ofFile = (path: string): Effect.Effect<Secret> =>
        fs.readFileString(path).pipe(
          Effect.map((content) => Redacted.make(content.trim())),
          Effect.option,
          Effect.map(Option.filter(isNotEmpty))
        )

      const lookup = (reference: string): Effect.Effect<Secret> => {
        const parsed = SecretReference.parse(reference)
        if (parsed === undefined) return Effect.succeedNone
        return parsed.kind === "variable" ? ofVariable(parsed.name) : ofFile(parsed.path)
      }

      const known = new Map<string, { readonly secret: Effect.Effect<Secret>; readonly until: number }>()
      const read = (reference: string): Effect.Effect<Secret> =>
        Effect.map(lookup(reference), (secret) => {
          const isFile = SecretReference.parse(reference)?.kind === "file"
          const until = isFile ? clock.currentTimeMillisUnsafe() + fileMs : Number.POSITIVE_INFINITY
          known.set(reference, { secret: Effect.succeed(secret), until })
          return secret
        })
      return Secrets.of({
        resolve: (reference) => {
          const found = known.get(reference)
          return found !== undefined && clock.currentTimeMillisUnsafe() < found.until ? found.secret : read(reference)
        }
      })
    })
  )
}
