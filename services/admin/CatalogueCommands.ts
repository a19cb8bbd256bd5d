/** `config check FILE`: whether a catalogue would be accepted. */
import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import * as Catalogue from "../../shared/catalogue/Catalogue.ts"
import { failPlainly } from "./Plainly.ts"

const check = Command.make(
  "check",
  { file: Argument.String("file").pipe(Argument.withDescription("The catalogue, a YAML file")) },
  Effect.fn(function*({ file }) {
    const { models, providers } = yield* Catalogue.load(file)
    yield* Console.log(`${file}: ${models.size} models, ${providers.size} providers`)
  }, failPlainly)
).pipe(Command.withDescription("Check a catalogue: every mistake with its path, exit code 1 if there is one"))

export const config = Command.make("config").pipe(
  Command.withDescription("The catalogue of models and providers"),
  Command.withSubcommands([check])
)
