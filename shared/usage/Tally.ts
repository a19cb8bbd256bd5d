/** The records of counted usage, each with the place in the event stream of the last page it counts. */
import { DateTime, type Option, Schema } from "effect"
import { buckets, type BucketSpec } from "../nats/Storage.ts"
import { addCounters, Counters, countersOf, emptyCounters, subtractCounters } from "./Counters.ts"
import type { Change } from "./RecentEvents.ts"
import type { UsageEvent } from "./UsageEvent.ts"

/** A sequence in a stream. `stream` is its creation time: a recreated stream reuses sequences for other events. */
export const Place = Schema.Struct({ stream: Schema.String, sequence: Schema.Int })
export type Place = typeof Place.Type

/** A record. `upTo` is the last page whose events it counts. */
export interface Counted<A> {
  readonly upTo: Place
  readonly value: A
}

/** A kind of record. */
export interface Tally<A> {
  readonly bucket: BucketSpec & { readonly account: "control" }
  /** The key of the record that counts an event; `undefined` if none does. */
  readonly keyOf: (event: UsageEvent) => string | undefined
  readonly zero: A
  readonly count: (value: A, change: Change) => A
  readonly encode: (record: Counted<A>) => string
  readonly decode: (text: string) => Option.Option<Counted<A>>
}

const codec = <A>(value: Schema.Codec<A, unknown>) => {
  const record = Schema.fromJsonString(Schema.Struct({ upTo: Place, value }))
  return { encode: Schema.encodeSync(record), decode: Schema.decodeUnknownOption(record) }
}

const dayMs = 86_400_000

/** The day of the last event: the next is most often of the same. */
let lastDay = { number: 0, text: "1970-01-01" }

const dayOf = ({ time }: UsageEvent): string => {
  const number = Math.floor(time / dayMs)
  if (number !== lastDay.number) lastDay = { number, text: DateTime.formatIsoDateUtc(DateTime.makeUnsafe(time)) }
  return lastDay.text
}

const DayOfKey = Schema.Array(
  Schema.Struct({ model: Schema.String, operation: Schema.String, counters: Counters })
)
type DayOfKey = typeof DayOfKey.Type

const changeRow = (rows: DayOfKey, { event, isWithdrawn }: Change): DayOfKey => {
  const { model, operation } = event
  const index = rows.findIndex((row) => row.model === model && row.operation === operation)
  const change = isWithdrawn ? subtractCounters : addCounters
  const counters = change(rows[index]?.counters ?? emptyCounters, countersOf(event))
  return index === -1 ? [...rows, { model, operation, counters }] : rows.with(index, { model, operation, counters })
}

/** The counters of one key on one day (UTC), by model and operation. The record's key is `2026-11.30.key_…`. */
export const dailyTally: Tally<DayOfKey> = {
  bucket: buckets.usageCounters,
  keyOf: (event) => `${dayToken(dayOf(event))}.${event.key}`,
  zero: [],
  count: changeRow,
  ...codec(DayOfKey)
}

/** `2026-11.30` for 2026-11-30, so that a filter can match a month. */
const dayToken = (day: string): string => `${day.slice(0, 7)}.${day.slice(8)}`

/** Parses the record key of a day's counters. */
export const parseDayKey = (key: string): { readonly day: string; readonly key: string } => {
  const [month = "", day = "", ...rest] = key.split(".")
  return { day: `${month}-${day}`, key: rest.join(".") }
}

/** The spending of one key in one month (UTC), in US dollars. The record's key is `2026-11.key_…`. */
export const monthlyTally: Tally<number> = {
  bucket: buckets.usageSpend,
  keyOf: (event) => event.costUsd === null || event.costUsd === 0 ? undefined : spendKey(dayOf(event), event.key),
  zero: 0,
  count: (spent, { event: { costUsd }, isWithdrawn }) => spent + (isWithdrawn ? -1 : 1) * (costUsd ?? 0),
  ...codec(Schema.Finite)
}

/** The record key for the spending of an API key in a day's month. */
export const spendKey = (day: string, key: string): string => `${day.slice(0, 7)}.${key}`
