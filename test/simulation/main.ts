/**
 * `npm run simulate`: runs simulations on all cores and exits with 1 if one violates an invariant. The last line sums up.
 *
 * SIMULATE_SECONDS (60), SIMULATE_SEED (the first seed; default: random), SIMULATE_COUNT (instead of the seconds), SIMULATE_UNTIL (`violation`: ends at the first), STORY (words
 * separated by commas: prints the lines of the trace with one of them; empty: all).
 */
import { randomInt } from "node:crypto"
import { fork } from "node:child_process"
import { availableParallelism } from "node:os"
import { scenarioOf } from "./Scenario.ts"
import { simulate } from "./Simulation.ts"

const seconds = Number(process.env["SIMULATE_SECONDS"] ?? 60)
const count = Number(process.env["SIMULATE_COUNT"] ?? Number.POSITIVE_INFINITY)
const first = Number(process.env["SIMULATE_SEED"] ?? randomInt(1_000_000_000))

interface Sum {
  seeds: number
  requests: number
  faults: number
  violations: number
}

const run = async (offset: number, step: number): Promise<Sum> => {
  const until = performance.now() + seconds * 1_000
  const sum = { seeds: 0, requests: 0, faults: 0, violations: 0 }
  for (let at = 0; at + offset < count && (count < Number.POSITIVE_INFINITY || performance.now() < until); at += step) {
    const { hash, scenario, violations, world } = await simulate(scenarioOf(first + offset + at))
    sum.seeds++
    sum.requests += scenario.requests.length
    sum.faults += scenario.faults.length
    sum.violations += violations.length
    if (violations.length > 0) {
      console.log(`seed ${scenario.seed} (${hash}): ${violations.length} violations`)
      for (const { detail, invariant } of violations.slice(0, 5)) console.log(`  ${invariant}: ${detail}`)
      console.log(
        `  faults: ${scenario.faults.map(({ at, kind, target }) => `${kind} ${target} at ${at.toFixed(0)}`).join(", ")}`
      )
    }
    if (sum.violations > 0 && process.env["SIMULATE_UNTIL"] === "violation") process.exit(1)
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
          env: { ...process.env, SIMULATE_SEED: `${first}`, SIMULATE_PART: `${at}` }
        })
        let sum: Sum | undefined
        child.on("message", (message) => void (sum = message as Sum))
        child.on("exit", (code) => sum === undefined ? reject(new Error(`a part ended with ${code}`)) : resolve(sum))
      }))
  )
  const total = (name: keyof Sum) => parts.reduce((sum, part) => sum + part[name], 0)
  console.log(
    `${total("seeds")} seeds from ${first}, ${total("requests")} requests, ${total("faults")} faults, ${
      total("violations")
    } violations`
  )
  process.exitCode = total("violations") > 0 ? 1 : 0
}
