/** The records of counted usage, and how events are counted into them. Each record names the last page of events that it counts. */
import { DateTime, Option, Schema } from "effect"
import { buckets, type BucketSpec } from "../nats/Storage.ts"
import { addCounters, Counters, countersOf, emptyCounters, subtractCounters } from "./Counters.ts"
import { place, Placements, teamsIn } from "./Placements.ts"
import type { Change } from "./RecentEvents.ts"
import type { UsageEvent } from "./UsageEvent.ts"

/** A sequence in a stream. `stream` is its creation time: a recreated stream reuses sequences for other events. */
export const Place = Schema.Struct({ stream: Schema.String, sequence: Schema.Int })
export type Place = typeof Place.Type

/** A record of counted usage. `upTo`: the last page whose events it counts. */
export interface Counted<A> {
  readonly upTo: Place
  readonly value: A
}

/** A change with the sequence of the page that made it, and the teams of its key, the nearest first. */
export interface TeamChange extends Change {
  readonly sequence: number
  readonly teams: ReadonlyArray<string>
}

/** A kind of record: where it is stored and how it counts. */
export interface Tally<A> {
  readonly bucket: BucketSpec & { readonly account: "control" }
  /** The keys of the records that count an event. */
  readonly keysOf: (change: TeamChange) => ReadonlyArray<string>
  readonly zero: A
  readonly count: (value: A, change: TeamChange) => A
  readonly encode: (record: Counted<A>) => string
  readonly decode: (text: string) => Option.Option<Counted<A>>
}

const codec = <A>(value: Schema.Codec<A, unknown>) => {
  const record = Schema.fromJsonString(Schema.Struct({ upTo: Place, value }))
  return { encode: Schema.encodeSync(record), decode: Schema.decodeUnknownOption(record) }
}

const dayMs = 86_400_000

/**
 * The day of the last event, cached because the next event is usually of the same day. Its text follows from its number alone, so all
 * projectors of a process may share it.
 */
let lastDay = { number: 0, text: "1970-01-01" }

const dayOf = ({ time }: UsageEvent): string => {
  const number = Math.floor(time / dayMs)
  if (number !== lastDay.number) lastDay = { number, text: DateTime.formatIsoDateUtc(DateTime.makeUnsafe(time)) }
  return lastDay.text
}

const Rows = Schema.Array(
  Schema.Struct({
    model: Schema.String,
    operation: Schema.String,
    /** The team of the key at the time of counting; absent for none. */
    team: Schema.optionalKey(Schema.String),
    counters: Counters
  })
)
type Rows = typeof Rows.Type

interface DayOfKey {
  readonly rows: Rows
  readonly placements: Placements
}

/**
 * Maximum number of rows, so that a record stays below NATS's limit of 1 MiB for a message: a row takes 650 bytes to 1.5 KiB. What
 * has no row by then counts in one of its team.
 */
const maxRows = 500
const other = { model: "other", operation: "other" }

const changeRow = (rows: Rows, { event, isWithdrawn }: TeamChange, team: string | undefined): Rows => {
  const find = (of: typeof other) =>
    rows.findIndex(({ model, operation, team: ofTeam }) =>
      model === of.model && operation === of.operation && ofTeam === team
    )
  const own = find(event)
  const isOwn = own !== -1 || rows.length < maxRows
  const { model, operation } = isOwn ? event : other
  const index = isOwn ? own : find(other)
  const change = isWithdrawn ? subtractCounters : addCounters
  const counters = change(rows[index]?.counters ?? emptyCounters, countersOf(event))
  const row = { model, operation, ...(team === undefined ? {} : { team }), counters }
  return index === -1 ? [...rows, row] : rows.with(index, row)
}

const Day = Schema.fromJsonString(Schema.Struct({ upTo: Place, value: Rows, placements: Placements }))
const encodeDay = Schema.encodeSync(Day)
const decodeDay = Schema.decodeUnknownOption(Day)

/** The counters of one key on one day (UTC), by model, operation and team. The record's key is `2026-11.30.key_…`. */
export const dailyTally: Tally<DayOfKey> = {
  bucket: buckets.usageCounters,
  keysOf: ({ event }) => [`${dayToken(dayOf(event))}.${event.key}`],
  zero: { rows: [], placements: [] },
  count: (day, change) => {
    const placements = place(day.placements, change.sequence, change.teams)
    const [team] = teamsIn(placements, change.page)
    return { rows: changeRow(day.rows, change, team), placements }
  },
  encode: ({ upTo, value: { placements, rows } }) => encodeDay({ upTo, value: rows, placements }),
  decode: (text) =>
    Option.map(decodeDay(text), ({ placements, upTo, value: rows }) => ({ upTo, value: { rows, placements } }))
}

/** The day as part of a record key: `2026-11.30` for 2026-11-30, so that a filter can match a month. */
const dayToken = (day: string): string => `${day.slice(0, 7)}.${day.slice(8)}`

/** Parses the record key of a day's counters. */
export const parseDayKey = (key: string): { readonly day: string; readonly key: string } => {
  const [month = "", day = "", ...rest] = key.split(".")
  return { day: `${month}-${day}`, key: rest.join(".") }
}

/** The US dollars that one key, or one team with all keys below it, has spent in a month (UTC). The record's key is `2026-11.key_…`. */
export const monthlyTally: Tally<number> = {
  bucket: buckets.usageSpend,
  keysOf: ({ event, teams }) =>
    event.costUsd === null || event.costUsd === 0
      ? []
      : [event.key, ...teams].map((id) => spendKey(dayOf(event), id)),
  zero: 0,
  count: (spent, { event: { costUsd }, isWithdrawn }) => spent + (isWithdrawn ? -1 : 1) * (costUsd ?? 0),
  ...codec(Schema.Finite)
}

/** The record key for the spending of an API key or a team in a day's month. */
export const spendKey = (day: string, id: string): string => `${day.slice(0, 7)}.${id}`

/** The key of the record, in `monthlyTally`'s bucket, of the time up to which all stored events are counted, in epoch milliseconds. */
export const countedUntilKey = "counted-until"
export const decodeCountedUntil = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Finite))
