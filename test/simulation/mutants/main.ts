/**
 * `npm run simulate:mutants`: simulates the gateway with a fault in its code, for many faults, and exits with 1 if it finds less
 * than 95 % of them. Prints those that it does not find.
 *
 * MUTANTS (`past`, `mechanical` or `all`, the default; anything else: those whose names have it), MUTANT_SEEDS (60: how many
 * simulations may miss a fault).
 */
import { spawn } from "node:child_process"
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { apply, mechanical, type Mutant, past } from "./Mutants.ts"

const project = join(import.meta.dirname, "../../..")
const folder = join(project, ".gateway", "mutants")
const wanted = process.env["MUTANTS"] ?? "all"
const seeds = process.env["MUTANT_SEEDS"] ?? "60"

/** A simulation whose code runs for ever is stopped after this many milliseconds. */
const longestMs = 120_000

const all = [...past, ...mechanical()]
const mutants = wanted === "all"
  ? all
  : wanted === "past"
  ? past
  : wanted === "mechanical"
  ? mechanical()
  : all.filter(({ name }) => name.includes(wanted))

/** Copies the code with the fault, and returns whether a simulation of it fails. */
const isFound = async (mutant: Mutant, at: number): Promise<boolean> => {
  const copy = join(folder, `${at}`)
  for (const part of ["shared", "test/simulation", "package.json", "services", "test/fixture/general"]) {
    cpSync(join(project, part), join(copy, part), { recursive: true })
  }
  writeFileSync(join(copy, mutant.file), apply(mutant))
  try {
    return await new Promise((resolve) => {
      const child = spawn(process.execPath, [join(copy, "test/simulation/main.ts")], {
        env: {
          ...process.env,
          SIMULATE_SEED: "20000",
          SIMULATE_COUNT: seeds,
          SIMULATE_PART: "0",
          SIMULATE_UNTIL: "violation"
        },
        stdio: "ignore",
        timeout: longestMs
      })
      child.on("exit", (code) => resolve(code !== 0))
    })
  } finally {
    rmSync(copy, { recursive: true, force: true })
  }
}

mkdirSync(folder, { recursive: true })
const missed: Array<string> = []
let next = 0
let done = 0
await Promise.all(Array.from({ length: availableParallelism() }, async () => {
  for (let at = next++; at < mutants.length; at = next++) {
    const mutant = mutants[at]!
    const found = await isFound(mutant, at)
    if (!found) missed.push(mutant.name)
    console.log(`${++done}/${mutants.length} ${found ? "found " : "MISSED"} ${mutant.name}`)
  }
}))
const found = mutants.length - missed.length
console.log(`${found} of ${mutants.length} mutants found (${(100 * found / mutants.length).toFixed(0)} %)`)
process.exitCode = found / mutants.length >= 0.95 ? 0 : 1
