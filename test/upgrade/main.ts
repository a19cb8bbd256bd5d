/**
 * `npm run upgrade`: upgrades a gateway under load from a former version to the working tree, and rolls it back. Exits with an error if
 * a request failed, or usage is incomplete.
 *
 * UPGRADE_FROM (a commit, tag or branch; default: the newest tag, or else the commit of version 0.1.0), UPGRADE_CLIENTS (24),
 * UPGRADE_RATE (requests per second, 40).
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Context, DateTime, Effect, Layer, Option, Schema } from "effect"
import { Spending } from "../../shared/usage/Spending.ts"
import { UsageCounters } from "../../shared/usage/UsageCounters.ts"
import { bundleServices } from "../fixture/gateway/Bundles.ts"
import { Gateway } from "../fixture/gateway/Gateway.ts"
import { namedWorkingTree, newestTag, releaseAt } from "../fixture/gateway/Release.ts"
import { NatsServer } from "../fixture/nats/NatsServer.ts"
import { rowsAt, total, usageProcess } from "../fixture/nats/UsageEvents.ts"
import { failures, type Outcome, textOf } from "./Report.ts"
import { writeSection } from "../proof/Page.ts"
import { catalogue, environment } from "./Setting.ts"
import { upgrade } from "./Upgrade.ts"

class Broken extends Schema.TaggedError<Broken>()("Broken", { what: Schema.Array(Schema.String) }) {
  override get message() {
    return this.what.join("\n")
  }
}

/** Version 0.1.0, which has no tag. */
const firstVersion = "be01da6"

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
  const nats = yield* NatsServer.make()
  const gateway = yield* Gateway.makeOn(nats, {
    ingresses: 2,
    workers: 2,
    services: ["embeddings"],
    release: from,
    catalogue,
    environment
  })
  yield* Effect.promise(() => gateway.startConsole())
  const report = yield* Effect.promise(() => upgrade(gateway, { from, to, clients, perSecond, log }))

  const usage = yield* usageProcess(nats, Layer.merge(UsageCounters.layerQuery, Spending.layer))
  const today = DateTime.formatIsoDateUtc(yield* DateTime.now)
  const month = { from: `${today.slice(0, 8)}01`, to: today, by: "key" } as const
  const counters = Context.get(usage, UsageCounters)
  // counters that stay incomplete are reported as they are
  const rows = yield* rowsAt(counters, report.requests, month).pipe(
    Effect.timeoutOrElse({ duration: "30 seconds", orElse: () => counters.query(month) })
  )
  const spending = Context.get(usage, Spending)
  const outcome: Outcome = {
    ...report,
    counted: {
      requests: total(rows, ({ requests }) => requests),
      inputTokens: total(rows, ({ usage }) => usage.inputTokens),
      outputTokens: total(rows, ({ usage }) => usage.outputTokens),
      costUsd: total(rows, ({ costUsd }) => costUsd)
    },
    spentUsd: report.keys.reduce((sum, key) => sum + spending.of(key), 0)
  }
  yield* writeSection({ heading: "Upgrades", command: command(ref), text: textOf(outcome) })
  const what = failures(outcome)
  if (what.length > 0) return yield* new Broken({ what })
}).pipe(Effect.scoped, Effect.provide(NodeServices.layer))

NodeRuntime.runMain(run)
