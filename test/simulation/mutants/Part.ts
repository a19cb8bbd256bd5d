/** A child process of `main.ts`: simulates the scenarios that it receives, one after another, and reports on each. */
import type { Scenario } from "../Scenario.ts"
import { simulate } from "../Simulation.ts"

export interface Order {
  readonly scenario: Scenario
  /** The number of the mechanical mutant to switch on; 0 for none. */
  readonly number: number
}

export interface Report {
  /** The mechanical mutants whose lines it has run, by their numbers. */
  readonly reached: ReadonlyArray<number>
  /** The first invariant that the seed violates. */
  readonly violated: string | undefined
  /** The error that stopped the simulation, if any. */
  readonly error: string | undefined
}

let chosen = 0
const isReached: Array<true | undefined> = []
// called by the lines that have mechanical mutants
Object.assign(globalThis, {
  hasMutant: (number: number): boolean => {
    isReached[number] = true
    return number === chosen
  }
})

const run = async ({ number, scenario }: Order): Promise<Report> => {
  chosen = number
  isReached.length = 0
  const { error, violated } = await simulate(scenario).then(
    ({ violations: [first] }) => ({ violated: first?.invariant, error: undefined }),
    (error: unknown) => ({ violated: undefined, error: String(error) })
  )
  return { violated, error, reached: Object.keys(isReached).map(Number) }
}

process.on("message", (order: Order) => void run(order).then((report) => process.send?.(report)))
process.send?.("ready")
