/**
 * `config check FILE`: whether a catalogue would be accepted, and what in it is hardly meant so. `config models FILE`: the
 * part of it that ingress reads.
 */
import { Console, Effect, FileSystem } from "effect"
import { Argument, Command } from "effect/cli"
import * as Catalogue from "../../shared/catalogue/Catalogue.ts"
import { located } from "../../shared/catalogue/CatalogueFile.ts"
import * as Models from "../../shared/catalogue/Models.ts"
import { lint } from "../../shared/catalogue/Lint.ts"
import { stringify } from "yaml"
import { failPlainly } from "./Plainly.ts"

const hasPackage = (name: string): boolean => {
  try {
    return import.meta.resolve(name) !== ""
  } catch {
    return false
  }
}

const check = Command.make(
  "check",
  { file: Argument.String("file").pipe(Argument.withDescription("The catalogue, a YAML file")) },
  Effect.fn(function*({ file }) {
    const { at, snapshot } = yield* Catalogue.inspect(file)
    const fs = yield* FileSystem.FileSystem
    const remarks = yield* lint(snapshot, {
      hasVariable: (name) => (process.env[name] ?? "") !== "",
      hasFile: (path) => fs.readFile(path).pipe(Effect.isSuccess),
      hasPackage
    })
    for (const { message, path } of remarks) {
      yield* Console.log(located(file, at(path, `warning: ${message}`)))
    }
    yield* Console.log(`${file}: ${snapshot.models.size} models, ${snapshot.providers.size} providers`)
  }, failPlainly)
).pipe(
  Command.withDescription(
    "Check a catalogue: every mistake with its line and path, exit code 1 unless all are warnings"
  )
)

const models = Command.make(
  "models",
  { file: Argument.String("file").pipe(Argument.withDescription("The catalogue, a YAML file")) },
  Effect.fn(function*({ file }) {
    const { models } = yield* Models.load(file)
    yield* Console.log(stringify({ models: Object.fromEntries(models) }).trimEnd())
  }, failPlainly)
).pipe(
  Command.withDescription("Print the models' part of a catalogue: all that ingress needs, without providers")
)

export const config = Command.make("config").pipe(
  Command.withDescription("The catalogue of models and providers"),
  Command.withSubcommands([check, models])
)
