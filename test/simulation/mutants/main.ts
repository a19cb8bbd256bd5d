/**
 * `npm run simulate:mutants`: simulates the gateway with a fault in its code, for many faults, and exits with 1 if it finds less
 * than 95 % of them. Prints those that it does not find, and which are excused.
 *
 * Each mutant is simulated with seeds of the kind that it needs, those that found other mutants first.
 *
 * MUTANTS (`past`, `mechanical` or `all`, the default; anything else: those whose names have one of its parts, which
 * commas separate), MUTANT_SEEDS (60: how many
 * simulations may miss a fault).
 */
import { availableParallelism } from "node:os"
import { scenarioOf } from "../Scenario.ts"
import { Child } from "./Child.ts"
import { mechanical } from "./Mechanical.ts"
import type { Mutant, Patch, Seed, Switch } from "./Mutants.ts"
import type { Needs } from "./Needs.ts"
import { apply, past } from "./Past.ts"

const wanted = process.env["MUTANTS"] ?? "all"
const mostSeeds = Number(process.env["MUTANT_SEEDS"] ?? 60)
const firstSeed = 20_000
/** Among how many seeds it looks for those of a rare kind. */
const mostLookedAt = 15_000

/** A simulation that takes this long runs for ever, in milliseconds: without a fault it takes a second at most. */
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
// fails if one does not fit any more
for (const patch of past) apply(patch)

const isUsual: Needs = () => true

/** The first seeds of every kind that a mutant needs. */
const seedsByNeeds = new Map<Needs, Array<Seed>>(mutants.map(({ needs = isUsual }) => [needs, []]))
for (let seed = firstSeed, open = [...seedsByNeeds]; open.length > 0 && seed < firstSeed + mostLookedAt; seed++) {
  const scenario = scenarioOf(seed)
  for (const [needs, seeds] of open) if (needs(scenario)) seeds.push(seed)
  open = open.filter(([, { length }]) => length < mostSeeds)
}

/** How many mutants each seed has found. */
const finds = new Map<Seed, number>()
const findsOf = (seed: Seed): number => finds.get(seed) ?? 0

/** Those that found other mutants come first. */
const seedsFor = ({ needs = isUsual }: Mutant): ReadonlyArray<Seed> =>
  (seedsByNeeds.get(needs) ?? []).toSorted((a, b) => findsOf(b) - findsOf(a))

/** One process after another, each until it fails. */
class Bench {
  #child: Child | undefined
  /** Of the mutant of the past in its code. */
  #name: string | undefined

  /** What a seed violates with a mutant, or without one. */
  async run(seed: Seed, mutant?: Patch | Switch): Promise<string | undefined> {
    const child = await this.#childWith(mutant === undefined || "number" in mutant ? undefined : mutant.name)
    const number = mutant !== undefined && "number" in mutant ? mutant.number : 0
    const report = await child.simulate({ seed, number }, longestMs)
    // a simulation that did not come to its end may disturb the next
    if (report === undefined || report.error !== undefined) this.end()
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

/** What seeds violate without a fault in the code, which they must not. */
const unmutated = new Map<Seed, Promise<string | undefined>>()

/** How the mutant was found; `undefined` if it was not. */
const find = async (mutant: Patch | Switch, bench: Bench, plain: Bench): Promise<string | undefined> => {
  for (const [at, seed] of seedsFor(mutant).entries()) {
    const violated = await bench.run(seed, mutant)
    if (violated === undefined) continue
    const anyway = unmutated.get(seed) ?? plain.run(seed)
    unmutated.set(seed, anyway)
    if (await anyway !== undefined) continue
    finds.set(seed, findsOf(seed) + 1)
    return `${violated}: seed ${seed}, simulation ${at + 1}`
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
for (const [seed, violated] of unmutated) {
  if (await violated === undefined) continue
  failing++
  log(`seed ${seed} violates "${await violated}" without a fault in the code`)
}
for (const name of missed) log(`missed: ${name}`)
const found = mutants.length - missed.length
log(
  `${found} of ${mutants.length} mutants found (${(100 * found / mutants.length).toFixed(0)} %), ${
    chosen.length - mutants.length
  } excused`
)
process.exitCode = found / mutants.length >= 0.95 && failing === 0 ? 0 : 1
