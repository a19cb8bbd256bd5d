/**
 * `npm run simulate:mutants`: simulates the gateway with one of many faults in its code, and exits with 1 if it finds less than 95 %
 * of the faults. Prints those that it does not find, and those that are excused.
 *
 * Each mutant is simulated in scenarios of the kind that it needs; see `Trials.ts`.
 *
 * MUTANTS (`past`, `mechanical` or `all`, the default; anything else: parts of names, separated by commas),
 * MUTANT_SEEDS (60: how many simulations may miss a fault).
 */
import { availableParallelism } from "node:os"
import { Child } from "./Child.ts"
import { mechanical } from "./Mechanical.ts"
import type { Mutant, Patch, Switch } from "./Mutants.ts"
import { apply, past } from "./Past.ts"
import { reaches, type Trial, Trials } from "./Trials.ts"

const wanted = process.env["MUTANTS"] ?? "all"
const mostTrials = Number(process.env["MUTANT_SEEDS"] ?? 60)

/** A simulation that takes this long, in milliseconds, never ends: without a fault it takes a second at most. */
const longestMs = 60_000

const isWanted = ({ name }: Mutant): boolean => wanted.split(",").some((part) => name.includes(part))
const chosen: ReadonlyArray<Patch | Switch> = wanted === "all"
  ? [...past, ...mechanical]
  : wanted === "past"
  ? past
  : wanted === "mechanical"
  ? mechanical
  : [...past, ...mechanical].filter(isWanted)
const mutants = chosen.filter(({ excuse }) => excuse === undefined)
// fails if the code of a fault has changed
for (const patch of past) apply(patch)

const trials = new Trials(mostTrials)

/** One process after another, each until it fails. */
class Bench {
  #child: Child | undefined
  /** The name of the past mutant in the child's code. */
  #name: string | undefined

  /** The invariant that a scenario violates with a mutant, or without one. */
  async run(trial: Trial, mutant?: Patch | Switch): Promise<string | undefined> {
    const child = await this.#childWith(mutant === undefined || "number" in mutant ? undefined : mutant.name)
    const number = mutant !== undefined && "number" in mutant ? mutant.number : 0
    const report = await child.simulate({ scenario: trial.scenario, number }, longestMs)
    // a simulation that did not end may disturb the next
    if (report === undefined || report.error !== undefined) this.end()
    else if (report.reached.length > 0) trial.reached = new Set(report.reached)
    return report === undefined ? "does not end, or crashes" : report.violated ?? report.error
  }

  end(): void {
    this.#child?.end()
    this.#child = undefined
  }

  async #childWith(name: string | undefined): Promise<Child> {
    if (this.#child !== undefined && this.#name === name) return this.#child
    this.end()
    this.#name = name
    const child = this.#child = new Child(name)
    if (!await child.load()) throw new Error(`the code with ${name ?? "mechanical mutants"} cannot be loaded`)
    return child
  }
}

/** How the mutant was found; `undefined` if it was not. */
const find = async (mutant: Patch | Switch, bench: Bench, plain: Bench): Promise<string | undefined> => {
  let simulations = 0
  for (const trial of trials.for(mutant)) {
    if (simulations === mostTrials) break
    const violated = await bench.run(trial, mutant)
    if (violated === undefined && reaches(trial, mutant) === false) continue
    simulations++
    if (violated === undefined) continue
    trial.unmutated ??= plain.run(trial)
    if (await trial.unmutated !== undefined) continue
    trial.finds++
    return `${violated}: seed ${trial.scenario.seed}, simulation ${simulations}`
  }
  return undefined
}

const { log } = console
const missed: Array<string> = []
let next = 0
let done = 0
await Promise.all(Array.from({ length: availableParallelism() }, async () => {
  const bench = new Bench()
  const plain = new Bench()
  for (let at = next++; at < mutants.length; at = next++) {
    const mutant = mutants[at]!
    const found = await find(mutant, bench, plain)
    if (found === undefined) missed.push(mutant.name)
    log(`${++done}/${mutants.length} ${found === undefined ? "MISSED" : "found "} ${mutant.name} (${found ?? "-"})`)
  }
  bench.end()
  plain.end()
}))
for (const { excuse, name } of chosen) if (excuse !== undefined) log(`excused: ${name}: ${excuse}`)
let failing = 0
for (const { scenario: { seed }, unmutated } of trials.all()) {
  const violated = await unmutated
  if (violated === undefined) continue
  failing++
  log(`seed ${seed} violates "${violated}" without a fault in the code`)
}
for (const name of missed) log(`missed: ${name}`)
const found = mutants.length - missed.length
log(
  `${found} of ${mutants.length} mutants found (${(100 * found / mutants.length).toFixed(0)} %), ${
    chosen.length - mutants.length
  } excused`
)
process.exitCode = found / mutants.length >= 0.95 && failing === 0 ? 0 : 1
