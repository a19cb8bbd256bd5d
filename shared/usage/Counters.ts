/** Sums over usage events: how many requests there were, what they consumed, how they ended and how long they took. */
import { Effect, Schema, Struct } from "effect"
import type { Usage } from "../contract/Usage.ts"
import type { UsageEvent } from "./UsageEvent.ts"

/** The upper bounds of the buckets of a distribution, in milliseconds; the last bucket has none. */
export const boundsMs: ReadonlyArray<number> = [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000]

/** How some times are distributed. */
const Distribution = Schema.Struct({
  count: Schema.Finite,
  sumMs: Schema.Finite,
  /** How many were within each of `boundsMs`, and not within the one before. */
  buckets: Schema.Array(Schema.Finite)
})
type Distribution = typeof Distribution.Type

/** Nothing, in what was counted before there was such a unit. */
const Total = Schema.Finite.pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(0)))

const units = {
  inputTokens: Total,
  outputTokens: Total,
  cachedTokens: Total,
  cacheWriteTokens: Total,
  reasoningTokens: Total,
  characters: Total,
  searchUnits: Total,
  images: Total,
  seconds: Total
} satisfies Record<keyof Usage, typeof Total>

/** What requests consumed together. */
type Consumed = Readonly<Record<keyof Usage, number>>

export const Counters = Schema.Struct({
  /** Those that failed or were cancelled among them. */
  requests: Schema.Finite,
  cancelled: Schema.Finite,
  /** Failures by the tag of their error. */
  errors: Schema.Record(Schema.String, Schema.Finite),
  usage: Schema.Struct(units),
  costUsd: Schema.Finite,
  /** From when a worker took a request to its end, for those that were answered. */
  duration: Distribution,
  /** The same to the first byte, for those whose answer began. */
  firstByte: Distribution
})
export type Counters = typeof Counters.Type

/** The names of what can be consumed, in the order in which they are shown. */
export const unitNames = Struct.keys(units)

const consumed = (of: (unit: keyof Usage) => number): Consumed => ({
  inputTokens: of("inputTokens"),
  outputTokens: of("outputTokens"),
  cachedTokens: of("cachedTokens"),
  cacheWriteTokens: of("cacheWriteTokens"),
  reasoningTokens: of("reasoningTokens"),
  characters: of("characters"),
  searchUnits: of("searchUnits"),
  images: of("images"),
  seconds: of("seconds")
})

const noTimes: Distribution = { count: 0, sumMs: 0, buckets: [...boundsMs.map(() => 0), 0] }

const oneTime = (ms: number): Distribution => {
  const within = boundsMs.findIndex((bound) => ms <= bound)
  const bucket = within === -1 ? boundsMs.length : within
  return { count: 1, sumMs: ms, buckets: noTimes.buckets.map((_, index) => index === bucket ? 1 : 0) }
}

const bothTimes = (a: Distribution, b: Distribution): Distribution => ({
  count: a.count + b.count,
  sumMs: a.sumMs + b.sumMs,
  buckets: noTimes.buckets.map((_, index) => (a.buckets[index] ?? 0) + (b.buckets[index] ?? 0))
})

export const zero: Counters = {
  requests: 0,
  cancelled: 0,
  errors: {},
  usage: consumed(() => 0),
  costUsd: 0,
  duration: noTimes,
  firstByte: noTimes
}

/** What one event counts. */
export const ofEvent = ({ costUsd, durationMs, error, firstByteMs, outcome, usage }: UsageEvent): Counters => ({
  requests: 1,
  cancelled: outcome === "cancelled" ? 1 : 0,
  errors: outcome === "failure" ? { [error ?? "unknown"]: 1 } : {},
  usage: consumed((unit) => usage?.[unit] ?? 0),
  costUsd: costUsd ?? 0,
  duration: outcome === "success" ? oneTime(durationMs) : noTimes,
  firstByte: firstByteMs === null ? noTimes : oneTime(firstByteMs)
})

const bothErrors = (a: Counters["errors"], b: Counters["errors"]): Counters["errors"] => {
  const errors = { ...a }
  for (const [tag, count] of Object.entries(b)) errors[tag] = (errors[tag] ?? 0) + count
  return errors
}

/** Two of them together. */
export const plus = (a: Counters, b: Counters): Counters => ({
  requests: a.requests + b.requests,
  cancelled: a.cancelled + b.cancelled,
  errors: bothErrors(a.errors, b.errors),
  usage: consumed((unit) => a.usage[unit] + b.usage[unit]),
  costUsd: a.costUsd + b.costUsd,
  duration: bothTimes(a.duration, b.duration),
  firstByte: bothTimes(a.firstByte, b.firstByte)
})
