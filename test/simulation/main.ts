/**
 * `npm run simulate`: runs simulations on all cores and exits with 1 if one violates an invariant. The last line is a summary.
 *
 * SIMULATE_SECONDS (60), SIMULATE_SEED (the first seed; default: random), SIMULATE_COUNT (seeds, instead of the seconds),
 * SIMULATE_UNTIL (`violation`: ends at the first, without shrinking it), STORY (words
 * separated by commas: prints the lines of the trace with one of them; empty: all).
 */
import { randomInt } from "node:crypto"
import { fork } from "node:child_process"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { scenarioOf } from "./Scenario.ts"
import { shrink } from "./Shrink.ts"
import { type Result, simulate } from "./Simulation.ts"
import { type Counts, countTransitions, coverageOf } from "./Transitions.ts"

const seconds = Number(process.env["SIMULATE_SECONDS"] ?? 60)
const count = Number(process.env["SIMULATE_COUNT"] ?? Number.POSITIVE_INFINITY)
const firstSeed = Number(process.env["SIMULATE_SEED"] ?? randomInt(1_000_000_000))

interface Sum {
  seeds: number
  requests: number
  faults: number
  violations: number
  /** Transitions of jobs at ingress, with the number of each. */
  readonly transitions: Counts
}

/** The interval between progress reports of a long run, in milliseconds. */
const progressMs = 60_000

/** How many seeds reach every reachable transition of a job. */
const seedsForAll = 300

/** Prints a scenario's violations, its contents, and its story. */
const report = ({ scenario, violations, world }: Result): void => {
  for (const { detail, invariant } of violations.slice(0, 5)) console.log(`  ${invariant}: ${detail}`)
  const { faults, ingresses, requests, servers, slots, workers } = scenario
  console.log(
    `  with ${servers} servers, ${ingresses} ingresses, ${workers} workers of ${slots} slots, ${requests.length} requests`
  )
  for (const { at, kind, moment, ms, target } of faults) {
    const when = moment === undefined ? "" : ` ${moment.isBefore ? "before" : "after"} it writes "${moment.text}"`
    console.log(`  fault: ${kind} ${target} at ${at.toFixed(0)} ms for ${ms.toFixed(0)} ms${when}`)
  }
  console.log(world.trace.story().split("\n").slice(-100).join("\n"))
}

const run = async (offset: number, step: number): Promise<Sum> => {
  const until = performance.now() + seconds * 1_000
  const sum: Sum = { seeds: 0, requests: 0, faults: 0, violations: 0, transitions: countTransitions() }
  let toldAt = performance.now()
  for (let at = 0; at + offset < count && (count < Number.POSITIVE_INFINITY || performance.now() < until); at += step) {
    const { hash, scenario, violations, world } = await simulate(scenarioOf(firstSeed + offset + at))
    sum.seeds++
    sum.requests += scenario.requests.length
    sum.faults += scenario.faults.length
    sum.violations += violations.length
    const [first] = violations
    if (first !== undefined) {
      console.log(`seed ${scenario.seed} (${hash}): ${violations.length} violations`)
      if (process.env["SIMULATE_UNTIL"] === "violation") process.exit(1)
      report(await simulate(await shrink(scenario, first.invariant)))
    }
    if (performance.now() - toldAt > progressMs) {
      toldAt = performance.now()
      console.log(`part ${offset}: ${sum.seeds} seeds, ${sum.requests} requests, ${sum.violations} violations so far`)
    }
    const words = process.env["STORY"]?.split(",").filter((word) => word !== "")
    if (words !== undefined) console.log(world.trace.story(...words))
  }
  return sum
}

const part = process.env["SIMULATE_PART"]
if (part !== undefined) {
  const sum = await run(Number(part), process.send === undefined ? 1 : availableParallelism())
  process.send?.(sum)
} else {
  const parts = await Promise.all(
    Array.from({ length: availableParallelism() }, (_, at) =>
      new Promise<Sum>((resolve, reject) => {
        const child = fork(import.meta.filename, {
          // short-lived objects are most of the work
          execArgv: [
            ...process.execArgv,
            "--max-semi-space-size=64",
            "--import",
            join(import.meta.dirname, "ObserveSteps.ts")
          ],
          env: { ...process.env, SIMULATE_SEED: `${firstSeed}`, SIMULATE_PART: `${at}` }
        })
        let sum: Sum | undefined
        child.on("message", (message) => void (sum = message as Sum))
        child.on("exit", (code) => sum === undefined ? reject(new Error(`a part ended with ${code}`)) : resolve(sum))
      }))
  )
  const total = (name: Exclude<keyof Sum, "transitions">) => parts.reduce((sum, part) => sum + part[name], 0)
  const counts: Counts = {}
  for (const { transitions } of parts) {
    for (const [name, count] of Object.entries(transitions)) counts[name] = (counts[name] ?? 0) + count
  }
  const { missing, reachable, reached, surprising } = coverageOf(counts)
  const isLong = total("seeds") >= seedsForAll
  const { log } = console
  if (isLong) { for (const transition of missing) log(`never reached: ${transition}`) }
  for (const transition of surprising) log(`reached, although listed as unreachable: ${transition}`)
  log(`${reached} of ${reachable} transitions of a job`)
  const isCovered = surprising.length === 0 && (!isLong || missing.length === 0)
  log(
    `${total("seeds")} seeds from ${firstSeed}, ${total("requests")} requests, ${total("faults")} faults, ${
      total("violations")
    } violations`
  )
  process.exitCode = total("violations") > 0 || !isCovered ? 1 : 0
}
