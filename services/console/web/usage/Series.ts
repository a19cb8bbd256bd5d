/** Converts usage rows to the series of charts. */
import { DateTime } from "effect"
import { addCounters, bucketBoundsMs, type Counters, emptyCounters } from "../../../../shared/usage/Counters.ts"
import { errorsOf, type UsageRow } from "../../../../shared/usage/UsageTable.ts"

/** The dimension that splits a chart into series. */
export type Division = "key" | "team" | "model" | "operation"

/** The values of a day by series; `null` if there is none. */
export interface Point {
  readonly day: string
  readonly values: Readonly<Record<string, number | null>>
}

/** The measures of the charts. */
const measures = {
  requests: (row: Counters) => row.requests,
  tokens: (row: Counters) => row.usage.inputTokens + row.usage.outputTokens,
  cost: (row: Counters) => row.costUsd,
  errors: (row: Counters) => errorsOf(row)
}
export type Measure = keyof typeof measures

/** Maximum number of separate series. One more sums up the rest. */
const maxSeries = 6
export const rest = "others"

/** Every day of a period, including both ends. */
export const daysBetween = (from: string, to: string): ReadonlyArray<string> => {
  const days: Array<string> = []
  for (let day = DateTime.makeUnsafe(from); days.length < 400; day = DateTime.add(day, { days: 1 })) {
    const text = DateTime.formatIsoDateUtc(day)
    if (text > to) break
    days.push(text)
  }
  return days
}

/** Names of the largest series, in descending order. */
export const seriesOf = (rows: ReadonlyArray<UsageRow>, by: Division, measure: Measure): ReadonlyArray<string> => {
  const sums = new Map<string, number>()
  for (const row of rows) {
    const name = row[by] ?? ""
    sums.set(name, (sums.get(name) ?? 0) + measures[measure](row))
  }
  const names = [...sums].filter(([, sum]) => sum > 0).toSorted((a, b) => b[1] - a[1]).map(([name]) => name)
  return names.length > maxSeries + 1 ? [...names.slice(0, maxSeries), rest] : names
}

/** Daily sums of each series. */
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

const mean = ({ count, sumMs }: Times): number | null => count === 0 ? null : Math.round(sumMs / count)

/** Interpolates a quantile from the buckets. */
const quantile = ({ buckets, count }: Times, share: number): number | null => {
  let left = count * share
  if (count === 0) return null
  for (const [index, within] of buckets.entries()) {
    const low = bucketBoundsMs[index - 1] ?? 0
    const high = bucketBoundsMs[index] ?? low
    if (within > 0 && within >= left) return Math.round(low + (high - low) * (left / within))
    left -= within
  }
  return bucketBoundsMs.at(-1) ?? null
}

export const latencySeries = ["95th percentile", "mean", "mean time to first byte"] as const

export const latencyOf = (rows: ReadonlyArray<UsageRow>): Readonly<Record<string, number | null>> => {
  const { duration, firstByte } = rows.reduce<Counters>(addCounters, emptyCounters)
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
