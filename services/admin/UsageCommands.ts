/** `usage`: prints the usage counters in the NATS at `NATS_URL`. */
import { Console, DateTime, Effect, Layer, Option, Record as Rec } from "effect"
import { Command, Flag } from "effect/cli"
import { ControlNats } from "../../shared/nats/Nats.ts"
import { UsageCounters } from "../../shared/usage/UsageCounters.ts"
import { errorsOf, UsageQuery, type UsageRow } from "../../shared/usage/UsageTable.ts"
import { flagDecoder } from "./FlagDecoder.ts"

const decode = flagDecoder(UsageQuery)

const text = (name: string, description: string) => Flag.String(name).pipe(Flag.withDescription(description))

const optional = (name: string, description: string) => Flag.optional(text(name, description))

/** Small amounts keep two significant digits, so that they never show as zero. */
const dollars = new Intl.NumberFormat("en", {
  useGrouping: false,
  minimumFractionDigits: 4,
  maximumFractionDigits: 4,
  maximumSignificantDigits: 2,
  roundingPriority: "morePrecision"
})

const describe = (row: UsageRow): string => {
  const { costUsd, day, key, model, operation, repeatedCalls, requests, team, usage } = row
  const used = Object.entries(usage).filter(([, units]) => units > 0).map(([unit, units]) => `${unit} ${units}`)
  return [
    ...[day, key, team, model, operation].filter((about) => about !== undefined),
    `requests ${requests}`,
    `errors ${errorsOf(row)}`,
    ...(repeatedCalls > 0 ? [`repeatedCalls ${repeatedCalls}`] : []),
    ...used,
    `USD ${dollars.format(costUsd)}`
  ].join("  ")
}

export const usage = Command.make(
  "usage",
  {
    by: text("by", "Grouping: key, team, model, operation or day, or several, comma-separated").pipe(
      Flag.withDefault("model")
    ),
    from: optional("from", "First day (UTC), for example 2026-11-01; default: the first of this month"),
    to: optional("to", "Last day (UTC); default: today"),
    key: optional("key", "Only usage of the key with this id"),
    team: optional("team", "Only usage of keys of the team with this id"),
    model: optional("model", "Only usage of this model"),
    operation: optional("operation", "Only usage of this operation, for example chat.completions"),
    csv: Flag.Boolean("csv").pipe(Flag.withDescription("Print CSV with a header line"), Flag.withDefault(false))
  },
  Effect.fn(
    function*({ by, csv, from, to, ...only }) {
      const today = DateTime.formatIsoDateUtc(yield* DateTime.now)
      const query = yield* decode({
        by: by.split(",").map((dimension) => dimension.trim()),
        from: Option.getOrElse(from, () => `${today.slice(0, 7)}-01`),
        to: Option.getOrElse(to, () => today),
        ...Rec.getSomes(only)
      })
      const counters = yield* UsageCounters
      if (csv) return yield* Console.log((yield* counters.csv(query)).trimEnd())
      const rows = yield* counters.query(query)
      if (rows.length === 0) yield* Console.error(`No usage from ${query.from} to ${query.to}`)
      for (const row of rows) yield* Console.log(describe(row))
    },
    Effect.provide(UsageCounters.layerQuery.pipe(Layer.provide(ControlNats.layer)))
  )
).pipe(Command.withDescription("Print usage by key, team, model, operation or day"))
