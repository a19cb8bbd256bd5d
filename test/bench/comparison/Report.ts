/** Renders the rounds of a benchmark as Markdown. */
import type { Round } from "../Load.ts"
import { median } from "../Median.ts"
import { table } from "../Results.ts"
import type { Figure, Row, StackName, Target } from "../Rows.ts"
import { chunkCount, stackNames, targets } from "../Rows.ts"

export interface Measured {
  /** The machine and the settings of the run. */
  readonly about: string
  readonly rows: ReadonlyArray<Row>
  readonly rounds: ReadonlyArray<Round>
  /** Reasons for missing stacks and incomplete rows. */
  readonly notes: ReadonlyArray<string>
}

export const roundsOf = (rounds: ReadonlyArray<Round>, row: string, stack: StackName) =>
  rounds.filter((round) => round.row === row && round.stack === stack)

/** Ratios of one stack to another in neighbouring rounds: only these ran under the same conditions. */
const ratios = (rounds: ReadonlyArray<Round>, row: string, figure: Figure, of: StackName, to: StackName) => {
  const beside = roundsOf(rounds, row, to)
  return roundsOf(rounds, row, of).flatMap((round, index) => {
    const other = beside[index]
    return other === undefined ? [] : [round[figure] / other[figure]]
  })
}

/** The stacks that ran, in their usual order. */
const stacksOf = (rounds: ReadonlyArray<Round>) =>
  stackNames.filter((name) => rounds.some(({ stack }) => stack === name))

const figureNames: Readonly<Record<Figure, string>> = {
  rate: "answers per second",
  p50Millis: "median time of an answer",
  cpuMicros: "CPU time per answer, without provider and collector"
}

const peers: ReadonlySet<StackName> = new Set(["portkey", "litellm"])

/** The subject of a ratio. Rates are percentages of a cheaper stack's, and multiples of a peer's. */
type Compared = Pick<Target, "figure" | "to">

const ratio = ({ figure, to }: Compared, value: number) =>
  figure === "rate" && !peers.has(to) ? `${Math.round(value * 100)} %` : `${value.toFixed(2)}×`

const range = (compared: Compared, values: ReadonlyArray<number>) =>
  `${ratio(compared, Math.min(...values))} to ${ratio(compared, Math.max(...values))}`

const isMet = ({ bound, is }: Target, value: number) => is === "at least" ? value >= bound : value <= bound

const targetRow = (rounds: ReadonlyArray<Round>, target: Target) => {
  const { bound, figure, is, of, row, to } = target
  const values = ratios(rounds, row, figure, of, to)
  const what = [
    `${row}: ${figureNames[figure]}`,
    `${of} / ${to}`,
    `${is === "at least" ? "≥" : "≤"} ${ratio(target, bound)}`
  ]
  if (values.length === 0) return [...what, "–", "–", "not measured"]
  const middle = median(values)
  return [...what, ratio(target, middle), range(target, values), isMet(target, middle) ? "yes" : "**no**"]
}

const rateCell = (rounds: ReadonlyArray<Round>): string => {
  if (rounds.length === 0) return ""
  const of = (figure: "rate" | "p50Millis" | "p99Millis") => median(rounds.map((round) => round[figure]))
  return `${Math.round(of("rate"))}/s, ${of("p50Millis").toFixed(2)} ms, ${of("p99Millis").toFixed(1)} ms`
}

const besideCell = (rounds: ReadonlyArray<Round>, row: string, to: StackName): string => {
  const values = ratios(rounds, row, "rate", "gateway", to)
  const compared = { figure: "rate", to } as const
  return values.length === 0 ? "" : `${ratio(compared, median(values))} (${range(compared, values)})`
}

const cpuRow = (row: string, stack: StackName, rounds: ReadonlyArray<Round>) => {
  const of = (figure: (round: Round) => number) => Math.round(median(rounds.map(figure)))
  return [
    row,
    stack,
    of(({ cpuOf }) => cpuOf.ingress),
    of(({ cpuOf }) => cpuOf.worker),
    of(({ cpuOf }) => cpuOf.nats),
    of(({ cpuMicros }) => cpuMicros),
    of(({ cpuOf }) => cpuOf.collector),
    of(({ cpuOf }) => cpuOf.provider)
  ]
}

export const report = ({ about, notes, rounds, rows }: Measured): string => {
  const stacks = stacksOf(rounds)
  const others = stacks.filter((name) => name !== "gateway")
  return [
    "# The gateway compared with its floor and its peers",
    "",
    about,
    ...notes.flatMap((note) => ["", note]),
    "",
    "Medians. Compare the ratios of neighbouring rounds: absolute figures are valid for one machine and one hour only.",
    "Method: test/bench/README.md. ![chart](latest.svg)",
    "",
    "## Targets",
    "",
    ...table(
      ["figure", "of", "target", "measured", "range", "met"],
      targets.filter(({ row }) => rows.some(({ name }) => name === row)).map((target) => targetRow(rounds, target))
    ),
    "",
    "Gateway, unlimited and sampled authenticate, validate, queue durably, meter and trace every request; untraced does not trace.",
    "Portkey and LiteLLM are one process without a queue and traces: Portkey without keys and usage; LiteLLM with a master key, but",
    "without a database, and so without limits and stored usage. The floor only relays.",
    "",
    "`npm run figures` measures the memory of open streams, clients that disconnect at once and workers of uneven speed.",
    "",
    "## Answers per second, median time, 99th percentile",
    "",
    ...table(
      ["load", ...stacks, ...others.map((name) => `gateway / ${name}`)],
      rows.map(({ name }) => [
        name,
        ...stacks.map((stack) => rateCell(roundsOf(rounds, name, stack))),
        ...others.map((stack) => besideCell(rounds, name, stack))
      ])
    ),
    "",
    `## CPU time per answer, in microseconds (a stream is one answer of ${chunkCount} chunks)`,
    "",
    ...table(
      ["load", "stack", "ingress", "worker", "nats", "total", "collector", "mock provider"],
      rows.flatMap(({ name }) =>
        stacks.flatMap((stack) => {
          const own = roundsOf(rounds, name, stack)
          return own.length === 0 ? [] : [cpuRow(name, stack, own)]
        })
      )
    ),
    ""
  ].join("\n")
}
