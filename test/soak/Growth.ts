/** Judges whether resources grow, by the slope of their samples over time. */
import type { Sample } from "./Sample.ts"

const hourMs = 60 * 60_000

export interface Slope {
  /** The slope per hour. */
  readonly perHour: number
  /** Twice the standard error: the slope is at least `perHour - error` with a probability of more than 95 %. */
  readonly error: number
}

/** The slope of a line through points of milliseconds and values, by least squares. At least three points. */
export const slopeOf = (points: ReadonlyArray<readonly [atMs: number, value: number]>): Slope => {
  const count = points.length
  const mean = (of: (point: readonly [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / count
  const [time, value] = [mean(([at]) => at), mean(([, value]) => value)]
  const spread = points.reduce((sum, [at]) => sum + (at - time) ** 2, 0)
  const slope = points.reduce((sum, [at, each]) => sum + (at - time) * (each - value), 0) / spread
  const rest = points.reduce((sum, [at, each]) => sum + (each - value - slope * (at - time)) ** 2, 0)
  return { perHour: slope * hourMs, error: 2 * hourMs * Math.sqrt(rest / (count - 2) / spread) }
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
 * The growth of each resource after the first `settleMs` milliseconds. It is too fast if its slope exceeds `perHour` by more than
 * its error. The unit is MB for memory, and the number of handles, timers and the like.
 */
export const growthIn = (all: ReadonlyArray<Sample>, settleMs: number, perHour: number): ReadonlyArray<Growth> => {
  const samples = all.filter(({ atMs }) => atMs >= settleMs)
  const mean = (values: ReadonlyArray<number>) => values.reduce((sum, value) => sum + value, 0) / values.length
  return [...samples[0]?.of ?? []].flatMap(([process, resources]) =>
    Object.keys(resources).map((resource): Growth => {
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
        isTooFast: limit !== undefined && slope.perHour - slope.error > limit
      }
    })
  )
}
