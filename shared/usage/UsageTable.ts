/** Queries of the usage counters, the grouping of their results, and CSV. */
import { type Effect, Schema, Stream, Struct } from "effect"
import { Csv } from "effect/encoding"
import { addCounters, Counters, emptyCounters, unitNames } from "./Counters.ts"
import { KeyId } from "./UsageEvent.ts"

/** The dimensions that counters can be grouped by. */
export const Dimension = Schema.Literals(["key", "team", "model", "operation", "day"])
export type Dimension = typeof Dimension.Type

/** A day in UTC. */
export const Day = Schema.String.check(
  Schema.isPattern(/^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$/u, { expected: "a date such as 2026-11-30" })
)

/** The number of a day's month, counted from year 0, to compare and iterate months. */
const monthNumber = (day: string): number => Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7)) - 1

/** Both days are included. */
export interface DayRange {
  readonly from: string
  readonly to: string
}

export const isWithin = ({ from, to }: DayRange, day: string): boolean => from <= day && day <= to

/** The months of a range of days. */
export const monthsOf = ({ from, to }: DayRange): ReadonlyArray<string> => {
  const months: Array<string> = []
  for (let at = monthNumber(from); at <= monthNumber(to) && months.length <= maxMonths; at++) {
    months.push(`${String(Math.floor(at / 12)).padStart(4, "0")}-${String(at % 12 + 1).padStart(2, "0")}`)
  }
  return months
}

/** How long counters are stored, in months. */
const maxMonths = 14

export const UsageQuery = Schema.Struct({
  /** The first and the last day. */
  from: Day,
  to: Day,
  by: Schema.Union([Dimension, Schema.NonEmptyArray(Dimension)]),
  /** Filters by the key's id, the model and the operation. */
  key: Schema.optionalKey(KeyId),
  model: Schema.optionalKey(Schema.String),
  operation: Schema.optionalKey(Schema.String),
  /** The id of the team that the key belonged to, without teams below it. */
  team: Schema.optionalKey(Schema.String)
}).check(Schema.makeFilter(({ from, to }) =>
  from <= to && monthsOf({ from, to }).length <= maxMonths
    ? undefined
    : { path: ["to"], issue: `must not be before the first day, nor more than ${maxMonths - 1} months after it` }
))
export type UsageQuery = typeof UsageQuery.Type

/** The counters of a group, and its dimensions. */
export const UsageRow = Schema.Struct({
  key: Schema.optionalKey(Schema.String),
  /** Empty for keys without a team. */
  team: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String),
  operation: Schema.optionalKey(Schema.String),
  day: Schema.optionalKey(Day),
  ...Counters.fields
})
export type UsageRow = typeof UsageRow.Type

/** Counters with all their dimensions. */
export type Cell = Readonly<Record<Dimension, string>> & { readonly counters: Counters }

const dimensionsOf = ({ by }: UsageQuery): ReadonlyArray<Dimension> => typeof by === "string" ? [by] : [...new Set(by)]

/** Groups cells by a query's dimensions. The cells must be of the query's days. */
export class Groups {
  readonly #query: UsageQuery
  readonly #dimensions: ReadonlyArray<Dimension>
  readonly #rows = new Map<string, UsageRow>()

  constructor(query: UsageQuery) {
    this.#query = query
    this.#dimensions = dimensionsOf(query)
  }

  add({ counters, ...about }: Cell): void {
    if (filters.some((name) => this.#query[name] !== undefined && this.#query[name] !== about[name])) return
    const id = this.#dimensions.map((dimension) => about[dimension]).join("\0")
    const group = this.#rows.get(id) ?? { ...emptyCounters, ...Struct.pick(about, this.#dimensions) }
    this.#rows.set(id, { ...group, ...addCounters(group, counters) })
  }

  get rows(): ReadonlyArray<UsageRow> {
    return [...this.#rows].toSorted(([a], [b]) => a < b ? -1 : 1).map(([, row]) => row)
  }
}

const filters = ["key", "team", "model", "operation"] as const

/** The number of failed requests. */
export const errorsOf = ({ errors }: Counters): number => Object.values(errors).reduce((sum, count) => sum + count, 0)

/** The mean in whole milliseconds; empty if nothing was measured. */
const mean = ({ count, sumMs }: Counters["duration"]): string => count === 0 ? "" : String(Math.round(sumMs / count))

/** The rows as CSV with a header line. */
export const csvOf = (query: UsageQuery, rows: ReadonlyArray<UsageRow>): Effect.Effect<string> => {
  const dimensions = dimensionsOf(query)
  const columns: ReadonlyArray<readonly [heading: string, of: (row: UsageRow) => string | number]> = [
    ...dimensions.map((dimension) => [dimension, (row: UsageRow) => row[dimension] ?? ""] as const),
    ["requests", (row) => row.requests],
    ["errors", errorsOf],
    ["cancelled", (row) => row.cancelled],
    ["repeatedCalls", (row) => row.repeatedCalls],
    ...unitNames.map((unit) => [unit, (row: UsageRow) => row.usage[unit]] as const),
    ["costUsd", (row) => row.costUsd],
    ["meanDurationMs", (row) => mean(row.duration)],
    ["meanFirstByteMs", (row) => mean(row.firstByte)]
  ]
  const headings = columns.map(([heading]) => heading)
  const records = rows.map((row) => columns.map(([, of]) => String(of(row))))
  return Stream.make(headings, ...records).pipe(Stream.pipeThroughChannel(Csv.encodeString()), Stream.mkString)
}
