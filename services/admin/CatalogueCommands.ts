/** `config check [--strict] FILE`: validates and lints a catalogue. `config models FILE`: prints the part of it that ingress reads. */
import { Console, Effect, FileSystem, Result, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { queueTimeout } from "../../shared/bus/ingress/QueueTimeout.ts"
import * as Catalogue from "../../shared/catalogue/Catalogue.ts"
import { CatalogueInvalid, formatLocated } from "../../shared/catalogue/CatalogueFile.ts"
import * as Models from "../../shared/catalogue/Models.ts"
import { lint } from "../../shared/catalogue/Lint.ts"
import { findOptionMistakes, serves } from "../../shared/provider/protocols/protocols.ts"
import { stringify } from "yaml"
import { Environment } from "./Environment.ts"

const hasPackage = (name: string): boolean => Result.isSuccess(Result.try(() => import.meta.resolve(name)))

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? "" : "s"}`

const file = Argument.String("file").pipe(Argument.withDescription("Catalogue file (YAML)"))

/** `--strict` allows no warnings. */
class TooManyWarnings extends Schema.TaggedError<TooManyWarnings>()("TooManyWarnings", {
  file: Schema.String,
  warnings: Schema.Int
}) {
  override get message() {
    return `${this.file}: ${count(this.warnings, "warning")}, and --strict allows none`
  }
}

const check = Command.make(
  "check",
  {
    file,
    strict: Flag.Boolean("strict").pipe(
      Flag.withDescription("Exit with code 1 after warnings too, except about what is switched off"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(function*({ file, strict }) {
    const { at, value: snapshot } = yield* Catalogue.inspect(file)
    const [mistake, ...others] = [...snapshot.providers].flatMap(([name, provider]) =>
      findOptionMistakes(provider).map(({ message, path }) => at(["providers", name, "options", ...path], message))
    )
    if (mistake !== undefined) return yield* new CatalogueInvalid({ file, mistakes: [mistake, ...others] })
    const fs = yield* FileSystem.FileSystem
    const environment = yield* Environment
    const remarks = yield* lint(snapshot, {
      hasVariable: (name) => (environment[name] ?? "") !== "",
      hasFile: (path) => fs.readFile(path).pipe(Effect.isSuccess),
      hasPackage,
      queueTimeoutMs: yield* queueTimeout,
      serves
    })
    for (const { message, path } of remarks) {
      yield* Console.log(formatLocated(file, at(path, `warning: ${message}`)))
    }
    yield* Console.log(
      `${file}: ${count(snapshot.models.size, "model")}, ${count(snapshot.providers.size, "provider")}`
    )
    const strictly = remarks.filter(({ isDeliberate }) => isDeliberate !== true).length
    if (strict && strictly > 0) return yield* new TooManyWarnings({ file, warnings: strictly })
  })
).pipe(
  Command.withDescription(
    "Print every error and warning in a catalogue with its line and path; errors exit with code 1, with --strict warnings too"
  )
)

const models = Command.make(
  "models",
  { file },
  Effect.fn(function*({ file }) {
    const { models, ...rest } = yield* Models.load(file)
    yield* Console.log(stringify({ ...rest, models: Object.fromEntries(models) }).trimEnd())
  })
).pipe(Command.withDescription("Print the models of a catalogue without its providers: the catalogue for ingress"))

export const config = Command.make("config").pipe(
  Command.withDescription("Check the catalogue of models and providers"),
  Command.withSubcommands([check, models])
)
