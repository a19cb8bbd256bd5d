/** Renders the result of a soak as Markdown, and lists what is wrong. */
import { table } from "../bench/Results.ts"
import type { Growth } from "./Growth.ts"
import type { SoakReport } from "./Soak.ts"

const figure = (value: number): string => value.toFixed(1)

const slope = ({ least, most, perHour }: Growth): string => `${figure(perHour)} (${figure(least)} to ${figure(most)})`

const judgement = ({ isTooFast, limit }: Growth): string =>
  limit === undefined ? "not judged" : isTooFast ? `**above ${limit}**` : "yes"

export interface Terms {
  /** The name of the plot's file, which is beside the page. */
  readonly plotFile: string
  readonly minutes: number
  readonly settleMinutes: number
  readonly streams: number
}

export const textOf = (
  { deploys, failed, requests, streams }: SoakReport,
  growth: ReadonlyArray<Growth>,
  terms: Terms
): string =>
  [
    `${terms.minutes} minutes with ${terms.streams} open streams and other requests beside them, and ${deploys} deploys: ` +
    `${streams} streams and ${requests} other requests were answered, and ${
      Object.values(failed).reduce((sum, count) => sum + count, 0)
    } ` +
    `failed. The processes below were never restarted. The slopes are those after the first ${terms.settleMinutes} minutes, of RSS ` +
    "and V8 after half of the run, because allocators keep what the largest peak so far has needed. In brackets is the interval that " +
    "holds a slope with a probability of 95 %. A slope is too steep if its whole interval exceeds its limit.",
    `![Resources by process](${terms.plotFile})`,
    table(
      ["process", "resource", "from", "to", "slope per hour", "within its limit"],
      growth.map((each) => [
        each.process,
        each.resource,
        figure(each.from),
        figure(each.to),
        slope(each),
        judgement(each)
      ])
    ).join("\n")
  ].join("\n\n")

export const failures = ({ failed }: SoakReport, growth: ReadonlyArray<Growth>): ReadonlyArray<string> => [
  ...Object.entries(failed).map(([outcome, count]) => `${count} requests failed: ${outcome}`),
  ...growth.filter(({ isTooFast }) => isTooFast).map((each) =>
    `${each.process}: ${each.resource} grows by ${slope(each)} per hour, from ${figure(each.from)} to ${
      figure(each.to)
    }`
  )
]
