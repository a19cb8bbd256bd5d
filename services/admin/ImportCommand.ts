/** `import litellm CONFIG`: a catalogue from LiteLLM's configuration, and teams and API keys from a dump of its database. */
import { Console, Effect, FileSystem, Layer, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { userInfo } from "node:os"
import { read } from "../../shared/catalogue/CatalogueFile.ts"
import { KeyAudit } from "../../shared/keys/KeyAudit.ts"
import { KeyStore } from "../../shared/keys/KeyStore.ts"
import { ControlNats } from "../../shared/nats/Nats.ts"
import * as Team from "../../shared/teams/Team.ts"
import { TeamStore } from "../../shared/teams/TeamStore.ts"
import { Environment } from "./Environment.ts"
import { InvalidInput } from "./FlagDecoder.ts"
import { readDump } from "./litellm/Dump.ts"
import { importCatalogue, type ImportedCatalogue } from "./litellm/ImportCatalogue.ts"
import { type ImportedKey, importKeys } from "./litellm/Keys.ts"
import { importTeams, type Teams } from "./litellm/Teams.ts"

/** How many keys are written concurrently. */
const concurrency = 16

const store = TeamStore.layer.pipe(
  Layer.provideMerge(Layer.merge(KeyStore.layer, KeyAudit.layer)),
  Layer.provideMerge(ControlNats.layer)
)

/** The actor that the audit log names. */
const actor = Effect.sync(() => `${userInfo().username} at the command line, from LiteLLM`)

/** Creates the teams and keys that do not exist yet. */
const create = Effect.fn(function*(teams: Teams, keys: ReadonlyArray<ImportedKey>) {
  const audit = yield* KeyAudit
  const by = yield* actor
  // teams first: ingress rejects a key whose team does not exist
  const newTeams = yield* (yield* TeamStore).importAll(
    [...teams.values()],
    (team) => audit.teamChanged(by, team, "created", { ...Team.settingsAsJson(team) })
  )
  yield* Console.error(`${newTeams} teams created, ${teams.size - newTeams} existed already`)
  const { importHashed } = yield* KeyStore
  const created = yield* Effect.forEach(
    keys,
    ({ fingerprint, settings }) =>
      Effect.tap(importHashed(fingerprint, settings), (key) =>
        Option.isNone(key)
          ? Effect.void
          : audit.created(by, key.value)),
    { concurrency }
  )
  const count = created.filter(Option.isSome).length
  yield* Console.error(`${count} keys created, ${keys.length - count} existed already or were revoked`)
}, Effect.provide(store))

/** Writes a file. Fails instead of replacing one with other content, which the operator may have edited. */
const write = Effect.fn(function*(file: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  if (!(yield* fs.exists(file))) {
    yield* fs.writeFileString(file, text, { flag: "wx" })
    return yield* Console.error(`${file}: written`)
  }
  if ((yield* fs.readFileString(file)) === text) return yield* Console.error(`${file}: has this content already`)
  return yield* new InvalidInput({ message: `${file}: exists with other content. Choose another name, or remove it` })
})

const list = (title: string, lines: ReadonlyArray<string>) =>
  lines.length === 0 ? Effect.void : Console.error([`\n${title}`, ...lines.map((line) => `  ${line}`)].join("\n"))

const show = Effect.fn(function*({ models, report, unpriced, variables }: ImportedCatalogue) {
  yield* Console.error(`${models.size} models`)
  yield* list("Variables that the workers need:", variables)
  yield* list("Models without a price, which no budget counts:", unpriced)
  yield* list("Settings of the configuration that need your attention:", report)
})

const describe = ({ name, ...settings }: { readonly name: string }): string => `${name}  ${JSON.stringify(settings)}`

const litellm = Command.make(
  "litellm",
  {
    config: Argument.String("config").pipe(Argument.withDescription("LiteLLM's configuration, config.yaml")),
    dump: Flag.String("database-dump").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription(
        "Plain SQL dump of LiteLLM's database by pg_dump. Its teams and keys are created in the NATS at NATS_URL"
      ),
      Flag.optional
    ),
    out: Flag.String("out").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription("File for the catalogue; by default it is printed"),
      Flag.optional
    ),
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withDescription("Show everything and change nothing"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(function*({ config, dryRun, dump, out }) {
    const environment = yield* Environment
    const catalogue = yield* importCatalogue(config, yield* read(config), (name) => environment[name])
    const database = Option.isNone(dump) ? undefined : yield* readDump(dump.value)
    if (Option.isSome(out) && !dryRun) yield* write(out.value, catalogue.text)
    else yield* Console.log(catalogue.text.trimEnd())
    yield* show(catalogue)
    if (database === undefined) return
    const teams = importTeams(database, catalogue.accessGroups)
    const keys = importKeys(database, catalogue.accessGroups, teams)
    yield* list("Rows and columns of the database that need your attention:", database.omissions.report)
    if (!dryRun) return yield* create(teams, keys)
    yield* list(
      `${teams.size} teams, not created (dry run):`,
      [...teams.values()].map(({ id, settings }) => `${id}  ${describe(settings)}`)
    )
    yield* list(`${keys.length} keys, not created (dry run):`, keys.map(({ settings }) => describe(settings)))
  })
).pipe(
  Command.withDescription(
    "Print a catalogue from LiteLLM's configuration, create its teams and keys, and list what has no counterpart"
  )
)

export const importFrom = Command.make("import").pipe(
  Command.withDescription("Import another gateway's configuration, teams and keys"),
  Command.withSubcommands([litellm])
)
