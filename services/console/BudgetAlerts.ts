/** Sends events to the webhooks of teams that have spent half, most or all of their budget, each once a month. */
import { DateTime, Effect, Layer, Option } from "effect"
import { whileJetStreamFails } from "../../shared/nats/JetStream.ts"
import { openBucket } from "../../shared/nats/KeyValue.ts"
import { buckets } from "../../shared/nats/Storage.ts"
import type { Team } from "../../shared/teams/Team.ts"
import { TeamTree } from "../../shared/teams/TeamTree.ts"
import { Spending } from "../../shared/usage/Spending.ts"
import { Webhooks } from "./handlers/WebhookHandlers.ts"

/** In percent of the budget. */
const thresholds = [50, 80, 100]

/** The pause between comparisons of spending with budgets, in milliseconds. Both are in memory. */
const lookMs = 2_000

/** How long a team that has no webhook is not looked up again, in milliseconds. */
const absentMs = 60_000

export const layer = Layer.effectDiscard(Effect.gen(function*() {
  const tree = yield* TeamTree
  const spending = yield* Spending
  const { deliveries, endpoints } = yield* Webhooks
  const bucket = yield* openBucket(buckets.usageSpend).pipe(Effect.retry(whileJetStreamFails))
  /** The marks of this month's alerts that are known to be sent. */
  let sent = { month: "", marks: new Set<string>() }

  /** When to look up teams without a webhook again, in epoch milliseconds. */
  const absentUntil = new Map<string, number>()

  /** Queues an alert, then writes its mark: after a failure, the alert is queued again under the same id instead of lost. */
  const alert = Effect.fnUntraced(function*({ id, monthlyBudgetUsd }: Team, month: string, percent: number) {
    const mark = `alert.${month}.${id}.${percent}`
    if (sent.marks.has(mark)) return
    const isSent = Option.isSome(yield* bucket.get(mark))
    if (!isSent) {
      if (Option.isNone(yield* endpoints.find(id))) {
        absentUntil.set(id, (yield* DateTime.now).epochMilliseconds + absentMs)
        return
      }
      yield* deliveries.add(id, {
        id: `evt_${id.slice("team_".length)}-${month}-${percent}`,
        type: "budget.threshold_reached",
        subject: id,
        details: { percent, month, budget_usd: monthlyBudgetUsd ?? 0, spent_usd: spending.of(id) },
        at: (yield* DateTime.now).epochMilliseconds
      })
      yield* bucket.put(mark, "true")
    }
    sent.marks.add(mark)
  })

  const look = Effect.gen(function*() {
    const now = yield* DateTime.now
    const month = DateTime.formatIsoDateUtc(now).slice(0, 7)
    if (sent.month !== month) {
      sent = { month, marks: new Set() }
      absentUntil.clear()
    }
    for (const team of tree.all().values()) {
      if (team.monthlyBudgetUsd === null || (absentUntil.get(team.id) ?? 0) > now.epochMilliseconds) continue
      const share = 100 * spending.of(team.id) / team.monthlyBudgetUsd
      // a sum of costs may fall short of the budget by a rounding error
      for (const percent of thresholds) if (share + 1e-9 >= percent) yield* alert(team, month, percent)
    }
  })

  yield* look.pipe(
    Effect.catch(({ detail }) => Effect.logWarning("budget alerts are delayed", { detail })),
    Effect.andThen(Effect.sleep(lookMs)),
    Effect.forever,
    Effect.forkScoped
  )
}))
