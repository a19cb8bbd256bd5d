/** Renders the rounds of a growing gateway, and judges whether the cost of a request is flat or linear. */
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

/** The exponent with which the cost grows between two sizes: 0 is flat, 1 linear, 2 quadratic. */
const power = (from: Point, to: Point) => Math.log(cost(to) / cost(from)) / Math.log(to.size / from.size)

/** The largest ratio of costs that counts as flat: rounds differ by a tenth or so. */
const flatUpTo = 1.3

/** The verdicts from best to worst. */
const verdicts = ["flat", "less than linear", "linear", "more than linear"] as const

/** Judges by the last step, because fixed costs hide the growth at first. */
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
    "# The cost of a request as the gateway grows",
    "",
    about,
    "",
    "A full gateway with one worker grows in one dimension after another. Median CPU time per request in microseconds,",
    `without provider and collector. Flat: the largest size costs at most ${flatUpTo} times as much as the smallest;`,
    "linear: in the last step the cost grows in proportion to the size.",
    "",
    ...table(
      ["dimension", "from, to", "cost from, to", "found", "expected", "met"],
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
      ["dimension", "size", "ingress", "worker", "nats", "total"],
      points.map((point) => [point.series, point.size, ...cells(point)])
    ),
    ""
  ].join("\n")
