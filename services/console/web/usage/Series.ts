/** From rows of usage to the lines and bars of charts. */
import { DateTime } from "effect"
import { boundsMs, type Counters } from "../../../../shared/usage/Counters.ts"
import { errorsOf, type UsageRow } from "../../../../shared/usage/UsageTable.ts"

/** By what the charts are divided. */
export type Division = "key" | "model" | "operation"

/** A day with a number for each series; `null` where there is nothing to tell. */
export interface Point {
  readonly day: string
  readonly values: Readonly<Record<string, number | null>>
}

/** A measure of one chart. */
export const measures = {
  requests: (row: Counters) => row.requests,
  tokens: (row: Counters) => row.usage.inputTokens + row.usage.outputTokens,
  cost: (row: Counters) => row.costUsd,
  errors: (row: Counters) => errorsOf(row)
}
export type Measure = keyof typeof measures

/** Series that are shown by themselves; the rest is one more. */
const maxSeries = 6
export const rest = "all others"

/** Every day from one to another. */
export const daysBetween = (from: string, to: string): ReadonlyArray<string> => {
  const days: Array<string> = []
  for (let day = DateTime.makeUnsafe(from); days.length < 400; day = DateTime.add(day, { days: 1 })) {
    const text = DateTime.formatIsoDateUtc(day)
    if (text > to) break
    days.push(text)
  }
  return days
}

/** The names of the largest series, the largest first. */
export const seriesOf = (rows: ReadonlyArray<UsageRow>, by: Division, measure: Measure): ReadonlyArray<string> => {
  const sums = new Map<string, number>()
  for (const row of rows) {
    const name = row[by] ?? ""
    sums.set(name, (sums.get(name) ?? 0) + measures[measure](row))
  }
  const names = [...sums].filter(([, sum]) => sum > 0).toSorted((a, b) => b[1] - a[1]).map(([name]) => name)
  return names.length > maxSeries + 1 ? [...names.slice(0, maxSeries), rest] : names
}

/** What each series came to on each day. */
export const pointsOf = (
  rows: ReadonlyArray<UsageRow>,
  days: ReadonlyArray<string>,
  series: ReadonlyArray<string>,
  by: Division,
  measure: Measure
): ReadonlyArray<Point> =>
  days.map((day) => {
    const values: Record<string, number> = Object.fromEntries(series.map((name) => [name, 0]))
    for (const row of rows) {
      if (row.day !== day) continue
      const name = row[by] ?? ""
      const shown = series.includes(name) ? name : rest
      if (shown in values) values[shown] = (values[shown] ?? 0) + measures[measure](row)
    }
    return { day, values }
  })

type Times = Counters["duration"]

const together = (all: ReadonlyArray<Times>): Times =>
  all.reduce((a, b) => ({
    count: a.count + b.count,
    sumMs: a.sumMs + b.sumMs,
    buckets: b.buckets.map((value, index) => value + (a.buckets[index] ?? 0))
  }), { count: 0, sumMs: 0, buckets: [] })

const mean = ({ count, sumMs }: Times): number | null => count === 0 ? null : Math.round(sumMs / count)

/** Within which so many of the times lie, as nearly as the buckets tell. */
const quantile = ({ buckets, count }: Times, share: number): number | null => {
  let left = count * share
  if (count === 0) return null
  for (const [index, within] of buckets.entries()) {
    const low = boundsMs[index - 1] ?? 0
    const high = boundsMs[index] ?? low
    if (within > 0 && within >= left) return Math.round(low + (high - low) * (left / within))
    left -= within
  }
  return boundsMs.at(-1) ?? null
}

export const latencySeries = ["95 of 100 within", "mean", "mean to the first byte"] as const

export const latencyOf = (rows: ReadonlyArray<UsageRow>): Readonly<Record<string, number | null>> => {
  const duration = together(rows.map((row) => row.duration))
  const firstByte = together(rows.map((row) => row.firstByte))
  return {
    [latencySeries[0]]: quantile(duration, 0.95),
    [latencySeries[1]]: mean(duration),
    [latencySeries[2]]: mean(firstByte)
  }
}

export const latencyPoints = (rows: ReadonlyArray<UsageRow>, days: ReadonlyArray<string>): ReadonlyArray<Point> =>
  days.map((day) => ({ day, values: latencyOf(rows.filter((row) => row.day === day)) }))

export const total = (rows: ReadonlyArray<UsageRow>, measure: Measure): number =>
  rows.reduce((sum, row) => sum + measures[measure](row), 0)
