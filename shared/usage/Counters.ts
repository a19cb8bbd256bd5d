/** Sums of usage events: requests, consumption, outcomes and durations. */
import { Effect, Record, Schema, Struct } from "effect"
import { Usage } from "../contract/Usage.ts"
import type { UsageEvent } from "./UsageEvent.ts"

/** The upper bounds of a distribution's buckets, in milliseconds. The last bucket has no bound. */
export const bucketBoundsMs: ReadonlyArray<number> = [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000]

const Distribution = Schema.Struct({
  count: Schema.Finite,
  sumMs: Schema.Finite,
  /** The number of values in each bucket: up to its bound and above the previous one. */
  buckets: Schema.Array(Schema.Finite)
})
type Distribution = typeof Distribution.Type

/** A sum; 0 in records from before its unit existed. */
const Total = Schema.Finite.pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(0)))

const units = Record.map(Usage.fields, () => Total)

export const Counters = Schema.Struct({
  /** Including failed and cancelled requests. */
  requests: Schema.Finite,
  cancelled: Schema.Finite,
  /** Failed requests by the tag of their error. */
  errors: Schema.Record(Schema.String, Schema.Finite),
  /** Calls that were repeated although the first one may be billed. */
  repeatedCalls: Total,
  usage: Schema.Struct(units),
  costUsd: Schema.Finite,
  /** From a worker's claim to the end of the answer, for successful requests. */
  duration: Distribution,
  /** From a worker's claim to the first byte, for answers that started. */
  firstByte: Distribution
})
export type Counters = typeof Counters.Type

/** The units of consumption, in display order. */
export const unitNames = Struct.keys(units)

const consumed = (of: (unit: keyof Usage) => number) => Record.map(units, (_, unit) => of(unit))

const noTimes: Distribution = { count: 0, sumMs: 0, buckets: [...bucketBoundsMs.map(() => 0), 0] }

const singleTime = (ms: number): Distribution => {
  const within = bucketBoundsMs.findIndex((bound) => ms <= bound)
  const bucket = within === -1 ? bucketBoundsMs.length : within
  return { count: 1, sumMs: ms, buckets: noTimes.buckets.map((_, index) => index === bucket ? 1 : 0) }
}

type Combine = (one: number, other: number) => number

const combineTimes = (a: Distribution, b: Distribution, combine: Combine): Distribution => ({
  count: combine(a.count, b.count),
  sumMs: combine(a.sumMs, b.sumMs),
  buckets: noTimes.buckets.map((_, index) => combine(a.buckets[index] ?? 0, b.buckets[index] ?? 0))
})

export const emptyCounters: Counters = {
  requests: 0,
  cancelled: 0,
  errors: {},
  repeatedCalls: 0,
  usage: consumed(() => 0),
  costUsd: 0,
  duration: noTimes,
  firstByte: noTimes
}

/** The counters of one event. */
export const countersOf = (event: UsageEvent): Counters => {
  const { costUsd, durationMs, error, firstByteMs, outcome, repeatedCalls = 0, usage } = event
  return {
    requests: 1,
    cancelled: outcome === "cancelled" ? 1 : 0,
    errors: outcome === "failure" ? { [error ?? "unknown"]: 1 } : {},
    repeatedCalls,
    usage: consumed((unit) => usage?.[unit] ?? 0),
    costUsd: costUsd ?? 0,
    duration: outcome === "success" ? singleTime(durationMs) : noTimes,
    firstByte: firstByteMs === null ? noTimes : singleTime(firstByteMs)
  }
}

const combineErrors = (a: Counters["errors"], b: Counters["errors"], combine: Combine): Counters["errors"] =>
  Record.filter({ ...a, ...Record.map(b, (count, error) => combine(a[error] ?? 0, count)) }, (count) => count !== 0)

const combineCounters = (a: Counters, b: Counters, combine: Combine): Counters => ({
  requests: combine(a.requests, b.requests),
  cancelled: combine(a.cancelled, b.cancelled),
  errors: combineErrors(a.errors, b.errors, combine),
  repeatedCalls: combine(a.repeatedCalls, b.repeatedCalls),
  usage: consumed((unit) => combine(a.usage[unit], b.usage[unit])),
  costUsd: combine(a.costUsd, b.costUsd),
  duration: combineTimes(a.duration, b.duration, combine),
  firstByte: combineTimes(a.firstByte, b.firstByte, combine)
})

export const addCounters = (a: Counters, b: Counters): Counters => combineCounters(a, b, (one, other) => one + other)

export const subtractCounters = (a: Counters, b: Counters): Counters =>
  combineCounters(a, b, (one, other) => one - other)
