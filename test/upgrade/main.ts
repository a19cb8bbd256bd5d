/**
 * `npm run upgrade`: upgrades a gateway under load from a former version to the working tree, and rolls it back. Exits with an error if
 * a request failed, or usage is incomplete.
 *
 * UPGRADE_FROM (a commit, tag or branch; default: the newest tag, or else the commit of version 0.1.0), UPGRADE_CLIENTS (24),
 * UPGRADE_RATE (requests per second, 40).
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Effect, Option, Schema } from "effect"
import { bundleServices } from "../fixture/gateway/Bundles.ts"
import { namedWorkingTree, newestTag, releaseAt } from "../fixture/gateway/Release.ts"
import { failures, textOf } from "./Report.ts"
import { writeSection } from "../proof/Page.ts"
import { firstVersion, rehearse } from "./Rehearsal.ts"

class Broken extends Schema.TaggedError<Broken>()("Broken", { what: Schema.Array(Schema.String) }) {
  override get message() {
    return this.what.join("\n")
  }
}

/** Those of different kinds take turns: a cluster replaces all Deployments at the same time. */
const services = ["ingress", "chat", "embeddings", "ingress", "chat"]

const settings = Config.all({
  ref: Config.String("UPGRADE_FROM").pipe(Config.option),
  clients: Config.Int("UPGRADE_CLIENTS").pipe(Config.withDefault(24)),
  perSecond: Config.Number("UPGRADE_RATE").pipe(Config.withDefault(40))
})

const command = (ref: Option.Option<string>) =>
  Option.match(ref, { onNone: () => "npm run upgrade", onSome: (ref) => `UPGRADE_FROM=${ref} npm run upgrade` })

const run = Effect.gen(function*() {
  const { clients, perSecond, ref } = yield* settings
  const log = (line: string) => process.stdout.write(`${line}\n`)
  const [from, to] = yield* Effect.promise(async () => {
    const name = Option.getOrUndefined(ref) ?? await newestTag() ?? firstVersion
    log(`builds ${name} and the working tree`)
    await bundleServices()
    return [await releaseAt(name), await namedWorkingTree()] as const
  })
  const outcome = yield* rehearse({ from, to, services, clients, perSecond, log })
  yield* writeSection({ heading: "Upgrades", command: command(ref), text: textOf(outcome) })
  const what = failures(outcome)
  if (what.length > 0) return yield* new Broken({ what })
}).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

NodeRuntime.runMain(run)
