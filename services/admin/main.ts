/** The operator's commands: API keys, the catalogue, usage, imports, and provisioning of NATS. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
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
import { exitWithMessage } from "./ExitWithMessage.ts"
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

Command.run(admin, { version: packageJson.version }).pipe(
  exitWithMessage,
  Effect.provide(NodeServices.layer),
  Effect.provideService(ServiceName, "admin"),
  NodeRuntime.runMain
)
