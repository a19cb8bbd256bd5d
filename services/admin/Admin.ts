/** The operator's commands: API keys, the catalogue, usage, imports, and provisioning of NATS. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { Command } from "effect/cli"
import packageJson from "../../package.json" with { type: "json" }
import { ServiceName } from "../../shared/telemetry/ServiceName.ts"
import * as BackupCommands from "./BackupCommands.ts"
import * as CatalogueCommands from "./CatalogueCommands.ts"
import { importFrom } from "./ImportCommand.ts"
import * as KeyCommands from "./KeyCommands.ts"
import * as NatsCommands from "./NatsCommands.ts"
import { exitCodeOf } from "./ExitCode.ts"
import { provision } from "./ProvisionCommand.ts"
import * as UsageCommands from "./UsageCommands.ts"

const admin = Command.make("admin").pipe(
  Command.withDescription("Administer the gateway"),
  Command.withSubcommands([
    KeyCommands.keys,
    CatalogueCommands.config,
    UsageCommands.usage,
    importFrom,
    provision,
    BackupCommands.backup,
    BackupCommands.restore,
    NatsCommands.nats
  ])
)

/** Runs the command in the words of a command line, prints what it has to say, and returns its exit code. */
export const run = (words: ReadonlyArray<string>): Effect.Effect<number> =>
  Command.runWith(admin, { version: packageJson.version })(words).pipe(
    exitCodeOf,
    Effect.provide(NodeServices.layer),
    Effect.provideService(ServiceName, "admin")
  )
