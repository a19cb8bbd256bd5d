/**
 * `npm run test:coverage [-- words for vitest]`: the share of the lines and branches of `services` and `shared` that `npm test` runs,
 * in the test's processes and in all that they start. Prints the totals and writes a line for each file into `.gateway/coverage.txt`.
 * Installs c8 by npm, which merges what Node has written.
 */
import { spawnSync } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { runVitest } from "../fixture/runner/VitestRun.ts"

const project = join(import.meta.dirname, "../..")
const written = join(project, ".gateway/v8-coverage")
const table = join(project, ".gateway/coverage.txt")

const c8 = (...words: ReadonlyArray<string>): string => {
  const options = [
    ...["exec", "--yes", "--", "c8@12.0.0", "report", "--merge-async", "--temp-directory", written],
    ...[
      "--include=services/**/*.ts",
      "--include=shared/**/*.ts",
      "--exclude=services/console/web/**",
      "--extension=.ts"
    ]
  ]
  const { status, stdout } = spawnSync("npm", [...options, ...words], {
    cwd: project,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
    maxBuffer: 64 * 1024 * 1024,
    env: { ...process.env, NODE_OPTIONS: "--max-old-space-size=8192" }
  })
  if (status !== 0) process.exit(status ?? 1)
  return stdout
}

rmSync(written, { recursive: true, force: true })
mkdirSync(written, { recursive: true })
const { code } = runVitest(process.argv.slice(2), { NODE_V8_COVERAGE: written }, "dot")
writeFileSync(table, c8("--reporter=text"))
process.stdout.write(c8("--reporter=text-summary"))
process.exitCode = code
