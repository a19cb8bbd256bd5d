/** Turns the rounds of a growing gateway into a page that says whether the cost of a request is flat or linear. */
import type { Round } from "../Load.ts"
import { median } from "../Median.ts"
import { table } from "../Results.ts"
import type { Series } from "./Series.ts"

export interface Point {
  readonly series: string
  readonly size: number
  readonly rounds: ReadonlyArray<Round>
}

const cost = ({ rounds }: Point) => median(rounds.map(({ cpuMicros }) => cpuMicros))

/** The power of the size with which the cost grows between two points: 0 is flat, 1 linear, 2 with the square. */
const power = (from: Point, to: Point) => Math.log(cost(to) / cost(from)) / Math.log(to.size / from.size)

/** What costs up to so much more is taken for no more: rounds differ by a tenth or so. */
const flatUpTo = 1.3

/** From the best. */
const verdicts = ["flat", "less than linear", "linear", "more than linear"] as const

/** The last step tells how it goes on, where at first fixed costs hide it. */
const verdictOf = (points: ReadonlyArray<Point>): typeof verdicts[number] | undefined => {
  const [first, before, last] = [points[0], points.at(-2), points.at(-1)]
  if (first === undefined || last === undefined || before === undefined) return undefined
  if (cost(last) <= flatUpTo * cost(first)) return "flat"
  const grows = power(before, last)
  return grows < 0.9 ? "less than linear" : grows <= 1.1 ? "linear" : "more than linear"
}

const cells = (point: Point) => {
  const of = (figure: (round: Round) => number) => Math.round(median(point.rounds.map(figure)))
  return [
    of(({ cpuOf }) => cpuOf.ingress),
    of(({ cpuOf }) => cpuOf.worker),
    of(({ cpuOf }) => cpuOf.nats),
    Math.round(cost(point))
  ]
}

export const page = (
  about: string,
  series: ReadonlyArray<Pick<Series<never, never>, "name" | "expected">>,
  points: ReadonlyArray<Point>
): string =>
  [
    "# What a request costs as the gateway grows",
    "",
    about,
    "",
    "One gateway in full with one worker grows by one thing after another. CPU time per request in microseconds, medians,",
    `without provider and collector. Flat: no more than ${flatUpTo} times as much at the largest size as at the smallest;`,
    "linear: in the last step it grows as the size does.",
    "",
    ...table(
      ["grown by", "from, to", "cost from, to", "found", "expected", "as it should be"],
      series.map(({ expected, name }) => {
        const own = points.filter((point) => point.series === name)
        const [first, last] = [own[0], own.at(-1)]
        const found = verdictOf(own)
        return [
          name,
          `${first?.size}, ${last?.size}`,
          first === undefined || last === undefined ? "" : `${Math.round(cost(first))}, ${Math.round(cost(last))}`,
          found ?? "–",
          expected,
          found !== undefined && verdicts.indexOf(found) <= verdicts.indexOf(expected) ? "yes" : "**no**"
        ]
      })
    ),
    "",
    ...table(
      ["grown by", "size", "ingress", "worker", "nats", "together"],
      points.map((point) => [point.series, point.size, ...cells(point)])
    ),
    ""
  ].join("\n")
