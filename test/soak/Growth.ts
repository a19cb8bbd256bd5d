/** Judges whether resources grow, by the slope of their samples over time. */
import type { Sample } from "./Sample.ts"

const hourMs = 60 * 60_000

export interface Slope {
  /** The slope per hour. */
  readonly perHour: number
  /** The slope is between these, per hour, with a probability of 95 %. */
  readonly least: number
  readonly most: number
}

/** The number of standard deviations on either side of a mean within which 95 % of a normal distribution lie. */
const deviations = 1.96

/**
 * The slope of points of milliseconds and values: the median of the slopes between all pairs of them (Theil and Sen), with the
 * interval that follows from Kendall's rank statistic. At least three points.
 *
 * Memory grows in steps: an allocator keeps what the largest peak so far has needed. A line of least squares takes one step for
 * growth that goes on. The median sees growth that goes on, also in steps, because then most pairs differ.
 */
export const slopeOf = (points: ReadonlyArray<readonly [atMs: number, value: number]>): Slope => {
  const slopes = points.flatMap(([at, value], index) =>
    points.slice(index + 1).map(([laterAt, later]) => hourMs * (later - value) / (laterAt - at))
  ).toSorted((a, b) => a - b)
  const { length: count } = points
  const spread = deviations * Math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
  const middle = slopes.length / 2
  const at = (rank: number) => slopes[Math.max(0, Math.min(slopes.length - 1, rank))] ?? 0
  return {
    perHour: (at(Math.ceil(middle) - 1) + at(Math.floor(middle))) / 2,
    least: at(Math.floor(middle - spread / 2) - 1),
    most: at(Math.ceil(middle + spread / 2))
  }
}

export interface Growth extends Slope {
  readonly process: string
  readonly resource: string
  /** The mean of the first and of the last tenth of the samples. */
  readonly from: number
  readonly to: number
  /** The maximum slope per hour; absent if the resource is not judged. */
  readonly limit: number | undefined
  readonly isTooFast: boolean
}

/** The memory of NATS is not judged: it stores 30 days of usage events, whose number grows with the load. */
const isUnjudged = (process: string, resource: string): boolean => process === "nats" && resource === "RSS (MB)"

/**
 * What allocators hold of the system's memory: they keep what the largest peak so far has needed, such as a deploy's, so it settles
 * only with the first deploys. Judged from the middle of the run on.
 */
const peaks = ["RSS (MB)", "V8 (MB)"]

/**
 * The growth of each resource after the first `settleMs` milliseconds; of `peaks` after half of the run, if that is later. It is too
 * fast if its slope exceeds `perHour` with a probability of 95 %. The unit is MB for memory, and the number of handles, timers and the
 * like.
 */
export const growthIn = (all: ReadonlyArray<Sample>, settleMs: number, perHour: number): ReadonlyArray<Growth> => {
  const middleMs = Math.max(settleMs, (all.at(-1)?.atMs ?? 0) / 2)
  const after = (ms: number) => all.filter(({ atMs }) => atMs >= ms)
  const [settled, half] = [after(settleMs), after(middleMs)]
  const mean = (values: ReadonlyArray<number>) => values.reduce((sum, value) => sum + value, 0) / values.length
  return [...settled[0]?.of ?? []].flatMap(([process, resources]) =>
    Object.keys(resources).map((resource): Growth => {
      const samples = peaks.includes(resource) ? half : settled
      const points = samples.map(({ atMs, of }) => [atMs, of.get(process)?.[resource] ?? 0] as const)
      const values = points.map(([, value]) => value)
      const tenth = Math.max(1, Math.round(values.length / 10))
      const slope = slopeOf(points)
      const limit = isUnjudged(process, resource) ? undefined : perHour
      return {
        process,
        resource,
        ...slope,
        from: mean(values.slice(0, tenth)),
        to: mean(values.slice(-tenth)),
        limit,
        isTooFast: limit !== undefined && slope.least > limit
      }
    })
  )
}
