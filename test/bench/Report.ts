/** Turns the rounds of a benchmark into its report, as Markdown. */
import type { ProcessName, Round, Scenario } from "./Load.ts"

const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((left, right) => left - right)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}

const figure = (scenario: Scenario, round: Round) => scenario.compares === "rate" ? round.rate : round.p50Millis

/** Gateway to floor, of neighbouring rounds: only these ran under the same conditions. */
const ratios = (scenario: Scenario, floor: ReadonlyArray<Round>, gateway: ReadonlyArray<Round>) =>
  floor.slice(0, gateway.length).map((round, index) => figure(scenario, gateway[index]!) / figure(scenario, round))

const cell = (scenario: Scenario, rounds: ReadonlyArray<Round>): string => {
  if (rounds.length === 0) return "–"
  return scenario.compares === "rate"
    ? `${Math.round(median(rounds.map((round) => round.rate)))} /s, p99 ${
      median(rounds.map((round) => round.p99Millis)).toFixed(0)
    } ms`
    : `p50 ${median(rounds.map((round) => round.p50Millis)).toFixed(2)} ms`
}

const ratioCells = (scenario: Scenario, values: ReadonlyArray<number>): string => {
  const target = scenario.compares === "rate" ? `≥ ${scenario.target * 100} %` : `≤ ${scenario.target}×`
  if (values.length === 0) return `– | – | ${target}`
  const show = (value: number) => scenario.compares === "rate" ? `${Math.round(value * 100)} %` : `${value.toFixed(2)}×`
  return `${show(median(values))} | ${show(Math.min(...values))} to ${show(Math.max(...values))} | ${target}`
}

const cpuRow = (scenario: Scenario, stack: Round["stack"], rounds: ReadonlyArray<Round>): string => {
  const of = (name: ProcessName) => Math.round(median(rounds.map((round) => round.cpuMicros[name])))
  return `| ${scenario.name} | ${stack} | ${of("ingress")} | ${of("worker")} | ${of("nats")} | ${
    Math.round(median(rounds.map(({ cpuMicros }) => cpuMicros.ingress + cpuMicros.worker + cpuMicros.nats)))
  } | ${of("provider")} |`
}

/** `about` says on what machine and under which settings the rounds ran. */
export const report = (about: string, scenarios: ReadonlyArray<Scenario>, rounds: ReadonlyArray<Round>): string => {
  const of = (scenario: Scenario, stack: Round["stack"]) =>
    rounds.filter((round) => round.scenario === scenario.name && round.stack === stack)
  const stacks = ["floor", "gateway"] as const
  return [
    "# The gateway beside its floor",
    "",
    about,
    "",
    "Medians. Compare the ratios, which are of neighbouring rounds; absolute figures belong to one machine and one hour.",
    "",
    "| load | floor | gateway | gateway / floor | range | target |",
    "|---|---|---|---|---|---|",
    ...scenarios.map((scenario) => {
      const floor = of(scenario, "floor")
      const gateway = of(scenario, "gateway")
      return `| ${scenario.name} | ${cell(scenario, floor)} | ${cell(scenario, gateway)} | ${
        ratioCells(scenario, ratios(scenario, floor, gateway))
      } |`
    }),
    "",
    "CPU time per answer, in microseconds:",
    "",
    "| load | stack | ingress | worker | nats | together | mock provider |",
    "|---|---|---|---|---|---|---|",
    ...scenarios.flatMap((scenario) =>
      stacks.filter((stack) => of(scenario, stack).length > 0).map((stack) =>
        cpuRow(scenario, stack, of(scenario, stack))
      )
    ),
    ""
  ].join("\n")
}
