/** `usage`: what has been used, from the counters in the NATS that `NATS_URL` names. */
import { Console, DateTime, Effect, Layer, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { ControlNats, layerBoth } from "../../shared/nats/Nats.ts"
import { UsageCounters } from "../../shared/usage/UsageCounters.ts"
import { errorsOf, UsageQuery, type UsageRow } from "../../shared/usage/UsageTable.ts"
import { flagDecoder } from "./FlagDecoder.ts"
import { failPlainly } from "./Plainly.ts"

const decode = flagDecoder(UsageQuery)

const text = (name: string, description: string) => Flag.String(name).pipe(Flag.withDescription(description))

/** Small sums keep the digits that make them more than nothing. */
const dollars = new Intl.NumberFormat("en", {
  useGrouping: false,
  minimumFractionDigits: 4,
  maximumFractionDigits: 4,
  maximumSignificantDigits: 2,
  roundingPriority: "morePrecision"
})

const describe = (row: UsageRow): string => {
  const { costUsd, day, key, model, operation, requests, usage } = row
  const used = Object.entries(usage).filter(([, units]) => units > 0).map(([unit, units]) => `${unit} ${units}`)
  return [
    ...[day, key, model, operation].filter((about) => about !== undefined),
    `requests ${requests}`,
    `errors ${errorsOf(row)}`,
    ...used,
    `USD ${dollars.format(costUsd)}`
  ].join("  ")
}

export const usage = Command.make(
  "usage",
  {
    by: text("by", "key, model, operation or day, or several of these with commas between").pipe(
      Flag.withDefault("model")
    ),
    from: text("from", "The first day (UTC), such as 2026-11-01; the first of this month by default").pipe(
      Flag.optional
    ),
    to: text("to", "The last day; today by default").pipe(Flag.optional),
    key: text("key", "Only what was asked with the key of this id").pipe(Flag.optional),
    model: text("model", "Only what was asked of this model").pipe(Flag.optional),
    operation: text("operation", "Only what was asked by this operation, such as chat.completions").pipe(Flag.optional),
    csv: Flag.Boolean("csv").pipe(Flag.withDescription("As CSV, with a line of headings"), Flag.withDefault(false))
  },
  Effect.fn(
    function*({ by, csv, from, to, ...only }) {
      const today = DateTime.formatIsoDateUtc(yield* DateTime.now)
      const query = yield* decode({
        by: by.split(",").map((dimension) => dimension.trim()),
        from: Option.getOrElse(from, () => `${today.slice(0, 7)}-01`),
        to: Option.getOrElse(to, () => today),
        ...Option.isSome(only.key) && { key: only.key.value },
        ...Option.isSome(only.model) && { model: only.model.value },
        ...Option.isSome(only.operation) && { operation: only.operation.value }
      })
      const counters = yield* UsageCounters
      if (csv) return yield* Console.log((yield* counters.csv(query)).trimEnd())
      const rows = yield* counters.query(query)
      if (rows.length === 0) yield* Console.error(`Nothing was used from ${query.from} to ${query.to}`)
      for (const row of rows) yield* Console.log(describe(row))
    },
    Effect.provide(UsageCounters.layerQuery.pipe(Layer.provide(ControlNats.layer))),
    failPlainly
  )
).pipe(Command.withDescription("What has been used, by key, model, operation or day"))

/** The counters hold what was counted by this. One such process is enough for a gateway of any size. */
export const countUsage = Command.make(
  "count-usage",
  {},
  () => Layer.launch(UsageCounters.layer).pipe(Effect.provide(layerBoth), failPlainly)
).pipe(
  Command.withDescription("Count what is used, until it is stopped: budgets and `usage` are about what was counted")
)
