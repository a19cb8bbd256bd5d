/** The simulations to try for a mutant, the most likely to find it first. */
import { type Scenario, scenarioOf } from "../Scenario.ts"
import type { Patch, Switch } from "./Mutants.ts"
import type { Needs } from "./Needs.ts"

/** A scenario, and what is known about it. */
export interface Trial {
  readonly scenario: Scenario
  /** The mechanical mutants whose lines it runs, once it has been simulated with one of them or none. */
  reached: ReadonlySet<number> | undefined
  /** How many mutants it has found. */
  finds: number
  /** What it violates without a fault in the code, once that was checked. It must violate nothing. */
  unmutated: Promise<string | undefined> | undefined
}

const firstSeed = 20_000
/** Maximum number of seeds to search for scenarios of a rare kind. */
const mostLookedAt = 5_000

const isUsual: Needs = (scenario) => scenario

/** Whether it runs the line of a mutant; `undefined` if that is not known. */
export const reaches = ({ reached }: Trial, mutant: Patch | Switch): boolean | undefined =>
  "number" in mutant ? reached?.has(mutant.number) : undefined

export class Trials {
  readonly #most: number
  readonly #byNeeds = new Map<Needs, ReadonlyArray<Trial>>()

  /** `most` is the maximum number of trials of each kind. */
  constructor(most: number) {
    this.#most = most
  }

  *all(): Generator<Trial> {
    for (const trials of this.#byNeeds.values()) yield* trials
  }

  /** Trials of the kind that the mutant needs, then others that run its line. Those that found other mutants come first. */
  *for(mutant: Patch | Switch): Generator<Trial> {
    const own = this.#of(mutant.needs ?? isUsual)
    const left = new Set(own)
    const score = (trial: Trial) => (reaches(trial, mutant) === true ? 1_000 : 0) + trial.finds
    while (left.size > 0) {
      const best = [...left].reduce((best, trial) => score(trial) > score(best) ? trial : best)
      left.delete(best)
      if (reaches(best, mutant) !== false) yield best
    }
    for (const trial of this.all()) if (!own.includes(trial) && reaches(trial, mutant) === true) yield trial
  }

  #of(needs: Needs): ReadonlyArray<Trial> {
    const known = this.#byNeeds.get(needs)
    if (known !== undefined) return known
    const trials: Array<Trial> = []
    for (let seed = firstSeed; trials.length < this.#most && seed < firstSeed + mostLookedAt; seed++) {
      const scenario = needs(scenarioOf(seed))
      if (scenario !== undefined) trials.push({ scenario, reached: undefined, finds: 0, unmutated: undefined })
    }
    this.#byNeeds.set(needs, trials)
    return trials
  }
}
