/** The rehearsal of an upgrade: a gateway of the former version, its upgrade and rollback under load, and its counters afterwards. */
import { Context, DateTime, Effect, Layer, Schedule } from "effect"
import { Spending } from "../../shared/usage/Spending.ts"
import { UsageCounters } from "../../shared/usage/UsageCounters.ts"
import { Gateway } from "../fixture/gateway/Gateway.ts"
import { NatsServer } from "../fixture/nats/NatsServer.ts"
import { rowsAt, total, usageProcess } from "../fixture/nats/UsageEvents.ts"
import { dollars, type Outcome } from "./Report.ts"
import { catalogue, environment } from "./Setting.ts"
import { upgrade, type UpgradeOptions } from "./Upgrade.ts"

/** Version 0.1.0, which has no tag. */
export const firstVersion = "be01da6"

export const rehearse = Effect.fnUntraced(function*(options: UpgradeOptions) {
  const countOf = (service: string) => options.services.filter((name) => name === service).length
  const nats = yield* NatsServer.make()
  const gateway = yield* Gateway.makeOn(nats, {
    ingresses: countOf("ingress"),
    workers: countOf("chat"),
    services: options.services.filter((name) => name !== "ingress" && name !== "chat"),
    release: options.from,
    catalogue,
    environment
  })
  yield* Effect.promise(() => gateway.startConsole())
  const report = yield* Effect.promise(() => upgrade(gateway, options))

  const usage = yield* usageProcess(nats, Layer.merge(UsageCounters.layerQuery, Spending.layer))
  const today = DateTime.formatIsoDateUtc(yield* DateTime.now)
  const month = { from: `${today.slice(0, 8)}01`, to: today, by: "key" } as const
  const counters = Context.get(usage, UsageCounters)
  // counters that stay incomplete are reported as they are
  const rows = yield* rowsAt(counters, report.requests, month).pipe(
    Effect.timeoutOrElse({ duration: "30 seconds", orElse: () => counters.query(month) })
  )
  const spending = Context.get(usage, Spending)
  const costUsd = total(rows, ({ costUsd }) => costUsd)
  const sum = Effect.sync(() => report.keys.reduce((sum, key) => sum + spending.of(key), 0))
  // the copy in memory follows the counters; a sum that stays different is reported as it is
  const spentUsd = yield* sum.pipe(
    Effect.repeat({ until: (spent) => dollars(spent) === dollars(costUsd), schedule: Schedule.spaced("50 millis") }),
    Effect.timeoutOrElse({ duration: "30 seconds", orElse: () => sum })
  )
  return {
    ...report,
    counted: {
      requests: total(rows, ({ requests }) => requests),
      inputTokens: total(rows, ({ usage }) => usage.inputTokens),
      outputTokens: total(rows, ({ usage }) => usage.outputTokens),
      costUsd
    },
    spentUsd
  } satisfies Outcome
})
