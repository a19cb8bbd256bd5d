/** The records that usage is counted into, each with the place in the stream of events up to which it has been. */
import { DateTime, type Option, Schema } from "effect"
import { buckets, type KeptBucket } from "../nats/Storage.ts"
import { Counters, ofEvent, plus, zero } from "./Counters.ts"
import type { UsageEvent } from "./UsageEvent.ts"

/** A place in a stream that was made at some time; one that is made anew has other events in the same places. */
export const Place = Schema.Struct({ stream: Schema.String, sequence: Schema.Int })
export type Place = typeof Place.Type

/** A record: what was counted, and up to which place. */
export interface Counted<A> {
  readonly upTo: Place
  readonly value: A
}

/** A kind of records. */
export interface Tally<A> {
  readonly bucket: KeptBucket & { readonly account: "control" }
  /** The record that an event is counted into; `undefined` where it changes none. */
  readonly keyOf: (event: UsageEvent) => string | undefined
  readonly zero: A
  readonly count: (value: A, event: UsageEvent) => A
  readonly encode: (record: Counted<A>) => string
  readonly decode: (text: string) => Option.Option<Counted<A>>
}

const codec = <A>(value: Schema.Codec<A, unknown>) => {
  const record = Schema.fromJsonString(Schema.Struct({ upTo: Place, value }))
  return { encode: Schema.encodeSync(record), decode: Schema.decodeUnknownOption(record) }
}

const dayOf = ({ time }: UsageEvent): string => DateTime.formatIsoDateUtc(DateTime.makeUnsafe(time))

const DayOfKey = Schema.Array(
  Schema.Struct({ model: Schema.String, operation: Schema.String, counters: Counters })
)
type DayOfKey = typeof DayOfKey.Type

const inRow = (rows: DayOfKey, event: UsageEvent): DayOfKey => {
  const { model, operation } = event
  const index = rows.findIndex((row) => row.model === model && row.operation === operation)
  const counters = plus(rows[index]?.counters ?? zero, ofEvent(event))
  return index === -1 ? [...rows, { model, operation, counters }] : rows.with(index, { model, operation, counters })
}

/** Under `2026-11.30.key_…`: the counters of one key on one day (UTC), by model and operation. */
export const days: Tally<DayOfKey> = {
  bucket: buckets.usageCounters,
  keyOf: (event) => `${dayToken(dayOf(event))}.${event.key}`,
  zero: [],
  count: inRow,
  ...codec(DayOfKey)
}

/** `2026-11-30` as it is in keys: what is before the dot finds a month. */
const dayToken = (day: string): string => `${day.slice(0, 7)}.${day.slice(8)}`

/** Takes the key of a day's counters apart. */
export const aboutOf = (key: string): { readonly day: string; readonly key: string } => {
  const [month = "", day = "", ...rest] = key.split(".")
  return { day: `${month}-${day}`, key: rest.join(".") }
}

/** Under `2026-11.key_…`: what one key has spent in one month (UTC), in US dollars. */
export const months: Tally<number> = {
  bucket: buckets.usageSpend,
  keyOf: (event) => event.costUsd === null || event.costUsd === 0 ? undefined : spendKey(dayOf(event), event.key),
  zero: 0,
  count: (spent, { costUsd }) => spent + (costUsd ?? 0),
  ...codec(Schema.Finite)
}

/** Where the spending of a key in a day's month stands. */
export const spendKey = (day: string, key: string): string => `${day.slice(0, 7)}.${key}`
