/** A process of `main.ts`: simulates what it is sent, one after another, and reports each. */
import { scenarioOf } from "../Scenario.ts"
import { simulate } from "../Simulation.ts"
import type { Seed } from "./Mutants.ts"

export interface Order {
  readonly seed: Seed
  /** Of a mechanical mutant; 0: none of them. */
  readonly number: number
}

export interface Report {
  /** The first invariant that the seed violates. */
  readonly violated: string | undefined
  /** Why it did not come to its end. */
  readonly error: string | undefined
}

const run = async ({ number, seed }: Order): Promise<Report> => {
  Object.assign(globalThis, { mutant: number })
  return await simulate(scenarioOf(seed)).then(
    ({ violations: [first] }) => ({ violated: first?.invariant, error: undefined }),
    (error: unknown) => ({ violated: undefined, error: String(error) })
  )
}

process.on("message", (order: Order) => void run(order).then((report) => process.send?.(report)))
process.send?.("ready")
