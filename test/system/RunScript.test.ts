/** `deploy/local/run.js` in a project of its own, with a stand-in for npm that says what it was asked to do. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { program, project } from "../fixture/LocalGateway.ts"

/** Installs by writing the list that npm writes, or fails as npm does. */
const npm = `#!/bin/sh
echo "$@" >> npm.log
if [ -n "$NPM_SAYS" ]; then printf '%b' "$NPM_SAYS" >&2; exec $NPM_THEN; fi
mkdir -p node_modules
cp package-lock.json node_modules/.package-lock.json
`

const lockfile = (version: string) =>
  JSON.stringify({ packages: { "": {}, "node_modules/a": { version }, "node_modules/b": { version, optional: true } } })

/** A project with nothing installed, and a way to run scripts in it. */
const makeProject = Effect.gen(function*() {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "run-script-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
  )
  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  write("package.json", `{ "type": "module" }`)
  write("package-lock.json", lockfile("1.0.0"))
  write("bin/npm", npm)
  chmodSync(join(folder, "bin/npm"), 0o755)
  write("deploy/local/run.js", "")
  copyFileSync(join(project, "deploy/local/run.js"), join(folder, "deploy/local/run.js"))
  const environment = {
    PATH: `${join(folder, "bin")}:${process.env["PATH"]}`,
    NATS_URL: "nats://127.0.0.1",
    NPM_SAYS: undefined as string | undefined
  }
  return {
    write,
    run: (args: ReadonlyArray<string>, more: Record<string, string> = {}) =>
      program(process.execPath, [join(folder, "deploy/local/run.js"), ...args], { ...environment, ...more }),
    calls: () => readFileSync(join(folder, "npm.log"), "utf8").trim().split("\n")
  }
})

describe("run.js", () => {
  it.live("installs what the lockfile asks for once, and again when the lockfile has changed", () =>
    Effect.gen(function*() {
      const { calls, run, write } = yield* makeProject
      const first = yield* run(["-e", "console.log('it runs')"])
      assert.strictEqual(yield* first.exited, 0)
      assert.include(first.lines, "it runs")
      assert.match(first.lines[0] ?? "", /^Installing dependencies … 0 s/)
      const second = yield* run(["-e", "console.log('it runs')"])
      assert.strictEqual(yield* second.exited, 0)
      assert.deepStrictEqual(second.lines, ["it runs"])
      assert.lengthOf(calls(), 1)
      write("package-lock.json", lockfile("2.0.0"))
      assert.strictEqual(yield* (yield* run([])).exited, 0)
      assert.lengthOf(calls(), 2)
    }))

  const failures = [
    {
      title: "that the registry cannot be reached",
      npm: "npm error code ENOTFOUND\\nnpm error network request failed, reason: getaddrinfo ENOTFOUND registry\\n",
      says: "error: the package registry could not be reached (ENOTFOUND): connect this machine and start again"
    },
    {
      title: "that the registry cannot be reached, without waiting until npm has tried each package",
      npm: "npm http fetch GET http://registry/a attempt 1 failed with ECONNREFUSED\\n".repeat(8) + "and goes on",
      says: "error: the package registry could not be reached (ECONNREFUSED): connect this machine and start again"
    },
    {
      title: "why npm failed",
      npm: "npm warn something\\nnpm error code EINTEGRITY\\nnpm error sha512-a is not sha512-b\\nnpm error more\\n",
      says: "error: npm install failed: sha512-a is not sha512-b"
    }
  ]
  for (const { npm, says, title } of failures) {
    it.live(`says in one line ${title}`, () =>
      Effect.gen(function*() {
        const { run } = yield* makeProject
        const failed = yield* run(["-e", "console.log('it runs')"], {
          NPM_SAYS: npm,
          NPM_THEN: npm.endsWith("and goes on") ? "sleep 600" : "false"
        })
        assert.strictEqual(yield* failed.exited, 1)
        assert.deepStrictEqual(failed.lines.filter((line) => !line.startsWith("Installing")), [says])
      }))
  }

  it.live("ends as the script ends", () =>
    Effect.gen(function*() {
      const { run } = yield* makeProject
      assert.strictEqual(yield* (yield* run(["-e", "process.exit(7)"])).exited, 7)
      assert.strictEqual(yield* (yield* run(["-e", "process.kill(process.pid, 'SIGKILL')"])).exited, 137)
    }))

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it.live(`asks the script to stop when ${signal} is sent to it alone`, () =>
      Effect.gen(function*() {
        const { run } = yield* makeProject
        const waits =
          "process.on('SIGTERM', () => process.exit(5)); setInterval(() => {}, 1000); console.log('it runs')"
        const running = yield* run(["-e", waits])
        yield* running.line(/^it runs$/)
        yield* running.signal(signal)
        assert.strictEqual(yield* running.exited, 5)
      }))
  }
})
