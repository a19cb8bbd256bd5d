/**
 * `npm run test:repeat -- 10 [--project process] [--beside 2] [paths]`: runs the suite, a project or some files that many times,
 * beside that many busy loops, and prints every test that failed at least once, with its share. It goes on after failures, and one
 * build serves all runs. Exits with 1 if a test failed.
 */
import { spawn } from "node:child_process"
import { relative } from "node:path"
import { parseArgs } from "node:util"
import { bundleServices } from "../fixture/gateway/Bundles.ts"
import { runVitest, type VitestReport } from "../fixture/runner/VitestRun.ts"

const { positionals: [times = "", ...paths], values } = parseArgs({
  allowPositionals: true,
  options: { project: { type: "string", multiple: true, default: [] }, beside: { type: "string", default: "0" } }
})

const countOf = (text: string, least: number, name: string): number => {
  const count = Number(text)
  if (Number.isInteger(count) && count >= least) return count
  console.error(
    `${name} must be a whole number of at least ${least}: npm run test:repeat -- 10 --project process --beside 2`
  )
  process.exit(1)
}

const rounds = countOf(times, 1, "the number of runs")
const beside = countOf(values.beside, 0, "--beside")

/** The names of what failed in a run: tests, and files that failed outside of their tests. */
const failuresIn = (report: VitestReport): ReadonlyArray<string> =>
  report.testResults.flatMap(({ assertionResults, name, status }) => {
    const file = relative(process.cwd(), name)
    const failed = assertionResults.filter((test) => test.status === "failed")
    if (status === "failed" && failed.length === 0) return [file]
    return failed.map(({ ancestorTitles, title }) => [file, ...ancestorTitles, title].join(" > "))
  })

const projects = values.project.flatMap((name) => ["--project", name])
const failures = new Map<string, number>()
const minutes: Array<number> = []
let unfinished = 0

await bundleServices()
const loops = Array.from(
  { length: beside },
  () => spawn(process.execPath, ["--eval", "for (;;);"], { stdio: "ignore" })
)
try {
  for (let round = 1; round <= rounds; round++) {
    const from = performance.now()
    const { report } = runVitest([...projects, ...paths], {}, "dot")
    minutes.push((performance.now() - from) / 60_000)
    if (report === undefined) unfinished++
    const failed = report === undefined ? [] : failuresIn(report)
    for (const name of failed) failures.set(name, (failures.get(name) ?? 0) + 1)
    console.log(`run ${round} of ${rounds}: ${failed.length} failed, ${minutes.at(-1)?.toFixed(1)} minutes`)
  }
} finally {
  for (const loop of loops) loop.kill("SIGKILL")
}

console.log(`\n| test | failed of ${rounds} |\n|---|---:|`)
for (const [name, count] of [...failures].toSorted(([, a], [, b]) => b - a)) console.log(`| ${name} | ${count} |`)
if (unfinished > 0) console.log(`| runs without a report | ${unfinished} |`)
const sorted = minutes.toSorted((a, b) => a - b)
console.log(
  `\n${rounds} runs beside ${beside} busy loops, median ${sorted[Math.floor(sorted.length / 2)]?.toFixed(1)} minutes: `
    + (failures.size + unfinished === 0 ? "0 failures" : `${failures.size} tests failed at least once`)
)
process.exitCode = failures.size + unfinished === 0 ? 0 : 1
