/** `backup` and `restore`: everything that outlives a request, from NATS to a folder and back. */
import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { type Copied, restoreAll, saveAll } from "../../shared/bus/provision/Backup.ts"
import { layerBoth } from "../../shared/nats/Nats.ts"

const folder = Argument.String("folder")

const lineOf = ({ messages, stream, writes }: Copied): string =>
  `${stream}: ${messages} messages${
    writes === undefined ? "" : `; records that were replaced by ${writes} writes meanwhile may be missing`
  }`

const report = (all: ReadonlyArray<Copied>) =>
  Effect.forEach(all, (copied) => Console.log(lineOf(copied)), { discard: true })

export const backup = Command.make(
  "backup",
  { folder: folder.pipe(Argument.withDescription("New folder, readable only by you")) },
  Effect.fn(function*({ folder }) {
    yield* report(yield* saveAll(folder))
  }, Effect.provide(layerBoth))
).pipe(
  Command.withDescription("Save keys, teams, usage, tasks, batches, responses and files from the NATS at NATS_URL")
)

export const restore = Command.make(
  "restore",
  { folder: folder.pipe(Argument.withDescription("Folder of a backup")) },
  Effect.fn(function*({ folder }) {
    yield* report(yield* restoreAll(folder))
  }, Effect.provide(layerBoth))
).pipe(
  Command.withDescription("Restore a backup into the NATS at NATS_URL, which must be empty. Run `provision` afterwards")
)
