/**
 * `npm run restore-drill`: backs up a gateway with production's rights, loses all of NATS and every process, and restores it. Exits
 * with an error if keys, usage or a response differ, or if tasks and a batch do not continue. Writes its section of
 * `test/proof.md`.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Schema } from "effect"
import { table } from "../../bench/Results.ts"
import { bundleServices } from "../../fixture/gateway/Bundles.ts"
import { writeSection } from "../Page.ts"
import { drill, type DrillReport, makeGround } from "./Drill.ts"

class NotRestored extends Schema.TaggedError<NotRestored>()("NotRestored", { what: Schema.Array(Schema.String) }) {
  override get message() {
    return `Not restored: ${this.what.join("; ")}`
  }
}

const section = ({ checks, saved, steps }: DrillReport): string =>
  [
    "A gateway with production's rights on NATS is saved by `npm run admin -- backup`. Then NATS and every process are killed, and",
    "NATS's disk is deleted. `npm run admin -- restore` fills an empty NATS, and the gateway starts again.",
    "",
    ...table(
      ["what", "before", "after", "as it should be"],
      checks.map(({ after, before, holds, what }) => [what, before, after, holds ? "yes" : "**no**"])
    ),
    "",
    `Durations: ${Object.entries(steps).map(([name, ms]) => `${name} ${(ms / 1_000).toFixed(1)} s`).join(", ")}.`,
    "",
    "The backup:",
    "",
    "```",
    ...saved,
    "```"
  ].join("\n")

const run = Effect.gen(function*() {
  yield* Effect.promise(bundleServices)
  const ground = yield* makeGround
  const report = yield* Effect.promise(() => drill(ground, (line) => process.stdout.write(`${line}\n`)))
  yield* writeSection({ heading: "Restore", command: "npm run restore-drill", text: section(report) })
  const failed = report.checks.filter(({ holds }) => !holds).map(({ what }) => what)
  if (failed.length > 0) return yield* new NotRestored({ what: failed })
}).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

NodeRuntime.runMain(run)
