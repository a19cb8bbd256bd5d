/** `deploy/local/run.js` in a project of its own, with a stand-in for npm that records its arguments. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { program, project } from "../../fixture/gateway/LocalGateway.ts"

/** Installs by writing the list that npm writes, with or without development packages, or fails as npm does. */
const npm = `#!/bin/sh
echo "$@" >> npm.log
if [ -n "$NPM_SAYS" ]; then printf '%b' "$NPM_SAYS" >&2; exec $NPM_THEN; fi
mkdir -p node_modules
case "$*" in *--omit=dev*) list=lock-without-dev.json ;; *) list=package-lock.json ;; esac
cp $list node_modules/.package-lock.json
`

/** The lockfile, and the list that npm writes with `--omit=dev`, of a project with one package of each kind. */
const lockfiles = (version: string): Readonly<Record<string, string>> => {
  const product = { "": {}, "node_modules/a": { version }, "node_modules/b": { version, optional: true } }
  const all = { ...product, "web": { dependencies: {} }, "node_modules/web": { resolved: "web", link: true } }
  return {
    "lock-without-dev.json": JSON.stringify({ packages: all }),
    "package-lock.json": JSON.stringify({ packages: { ...all, "node_modules/tool": { version, dev: true } } })
  }
}

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
  const lock = (version: string) => {
    for (const [name, text] of Object.entries(lockfiles(version))) write(name, text)
  }
  lock("1.0.0")
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
    folder,
    write,
    /** Makes the lockfile ask for this version of every package. */
    lock,
    run: (args: ReadonlyArray<string>, more: Record<string, string> = {}) =>
      program(process.execPath, [join(folder, "deploy/local/run.js"), ...args], { ...environment, ...more }),
    calls: () => readFileSync(join(folder, "npm.log"), "utf8").trim().split("\n")
  }
})

describe("run.js", () => {
  it.live("installs the lockfile's packages once, and again after the lockfile changes", () =>
    Effect.gen(function*() {
      const { calls, lock, run } = yield* makeProject
      const first = yield* run(["-e", "console.log('it runs')"])
      assert.strictEqual(yield* first.exited, 0)
      assert.include(first.lines, "it runs")
      assert.match(first.lines[0] ?? "", /^Installing dependencies … 0 s/)
      const second = yield* run(["-e", "console.log('it runs')"])
      assert.strictEqual(yield* second.exited, 0)
      assert.deepStrictEqual(second.lines, ["it runs"])
      assert.lengthOf(calls(), 1)
      lock("2.0.0")
      assert.strictEqual(yield* (yield* run([])).exited, 0)
      assert.lengthOf(calls(), 2)
    }))

  it.live("installs no development packages for the product, but does for every other script", () =>
    Effect.gen(function*() {
      const { calls, folder, run, write } = yield* makeProject
      const installsFor = (script: string) =>
        Effect.gen(function*() {
          const before = existsSync(join(folder, "npm.log")) ? calls().length : 0
          const running = yield* run(script === "" ? [] : [join(folder, script)])
          assert.strictEqual(yield* running.exited, 0, running.lines.join("\n"))
          return calls().slice(before)
        })
      const scripts = ["deploy/local/main.ts", "services/admin/main.ts", "test/tool.ts"]
      for (const script of scripts) write(script, "")
      assert.match((yield* installsFor("deploy/local/main.ts")).join(), /^install .*--omit=dev/)
      assert.deepStrictEqual(yield* installsFor("services/admin/main.ts"), [])
      assert.match((yield* installsFor("test/tool.ts")).join(), /^install .*--include=dev/)
      assert.deepStrictEqual(yield* installsFor(""), [])
      assert.deepStrictEqual(yield* installsFor("deploy/local/main.ts"), [])
    }))

  it.live("keeps development packages when it updates those of the product", () =>
    Effect.gen(function*() {
      const { calls, folder, lock, run, write } = yield* makeProject
      write("deploy/local/main.ts", "")
      assert.strictEqual(yield* (yield* run([])).exited, 0)
      lock("2.0.0")
      assert.strictEqual(yield* (yield* run([join(folder, "deploy/local/main.ts")])).exited, 0)
      assert.notMatch(calls().at(-1) ?? "", /--omit=dev/)
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
    it.live(`reports in one line ${title}`, () =>
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

  it.live("exits with the script's exit code, or 128 plus its signal", () =>
    Effect.gen(function*() {
      const { run } = yield* makeProject
      assert.strictEqual(yield* (yield* run(["-e", "process.exit(7)"])).exited, 7)
      assert.strictEqual(yield* (yield* run(["-e", "process.kill(process.pid, 'SIGKILL')"])).exited, 137)
    }))

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    it.live(`asks the script to stop if it alone gets a ${signal}`, () =>
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

/** Installs by creating an executable, and records its arguments. */
const aptGet = `#!/bin/sh
echo "apt-get $@" >> system.log
for word; do name=$word; done
[ "$name" = update ] && exit
[ "$name" = prometheus ] && name=promtool
printf '#!/bin/sh\n' > "$STANDINS/$name"
chmod +x "$STANDINS/$name"
`

const sudo = `#!/bin/sh
echo "sudo $@" >> system.log
while [ "\${1#-}" != "$1" ]; do shift; done
exec "$@"
`

/** A project that sees none of the machine's own programs, with this process as root or not. */
const makeMachine = (user: "root" | "ordinary") =>
  Effect.gen(function*() {
    const { folder, run, write } = yield* makeProject
    const standins = join(folder, "bin")
    const script = readFileSync(join(project, "deploy/local/run.js"), "utf8")
    const bare = script.replace(/const systemFolders = \[.*\]/, "const systemFolders = []")
    assert.notStrictEqual(bare, script)
    write("deploy/local/run.js", bare)
    write("node_modules/vitest/vitest.mjs", "console.log('it runs')")
    for (const [name, text] of Object.entries({ "apt-get": aptGet, sudo })) write(`bin/${name}`, text)
    for (const name of ["sh", "cp", "mkdir", "chmod", "env", "node"]) {
      symlinkSync(name === "node" ? process.execPath : `/bin/${name}`, join(standins, name))
    }
    for (const name of ["apt-get", "sudo"]) chmodSync(join(standins, name), 0o755)
    const uid = user === "root" ? 0 : 1_000
    const environment = {
      PATH: standins,
      STANDINS: standins,
      NATS_URL: "",
      CHROMIUM: "",
      GATEWAY_INSTALL: "",
      NODE_OPTIONS: `--import=data:text/javascript,process.getuid=()=>${uid}`
    }
    return {
      folder,
      run: (args: ReadonlyArray<string>, more: Record<string, string> = {}) => run(args, { ...environment, ...more }),
      /** Runs on a terminal, on which this text is typed. */
      onTerminal: (typed: string, args: ReadonlyArray<string>) =>
        program("/bin/sh", [
          "-c",
          `cd ${folder}; printf '${typed}' | script -qec "node deploy/local/run.js ${args.join(" ")}" /dev/null`
        ], { ...environment, PATH: `${standins}:/usr/bin:/bin` }),
      /** The commands run on the system, in order. */
      system: () => existsSync(join(folder, "system.log")) ? readFileSync(join(folder, "system.log"), "utf8") : ""
    }
  })

describe("run.js without the system's programs", () => {
  const start = ["-e", "console.log('it runs')"]
  const installs = (name: string) => new RegExp(`^apt-get .*install -y --no-install-recommends ${name}$`, "m")

  it.live("prints how to install them and changes nothing, without a terminal, root or consent", () =>
    Effect.gen(function*() {
      const { run, system } = yield* makeMachine("ordinary")
      for (const more of [{}, { GATEWAY_INSTALL: "0" }]) {
        const refused = yield* run(start, more)
        assert.strictEqual(yield* refused.exited, 1)
        const said = refused.lines.join("\n")
        assert.match(said, /^nats-server is missing. To install it:\n {2}sudo .*apt-get .*install .*nats-server$/m)
        assert.match(said, /^Nothing was installed: .*GATEWAY_INSTALL=1/m)
        assert.match(said, /^error: nats-server is needed: /m)
        assert.notInclude(refused.lines, "it runs")
        assert.strictEqual(system(), "")
      }
    }))

  it.live("installs them with GATEWAY_INSTALL=1, and never asks for a password without a terminal", () =>
    Effect.gen(function*() {
      const { run, system } = yield* makeMachine("ordinary")
      const allowed = yield* run(start, { GATEWAY_INSTALL: "1" })
      assert.strictEqual(yield* allowed.exited, 0, allowed.lines.join("\n"))
      assert.include(allowed.lines, "it runs")
      assert.match(system(), /^sudo -n env /)
      assert.match(system(), installs("nats-server"))
    }))

  it.live("installs them as root without a terminal, as in CI and containers, unless forbidden", () =>
    Effect.gen(function*() {
      const { run, system } = yield* makeMachine("root")
      const refused = yield* run(start, { GATEWAY_INSTALL: "0" })
      assert.strictEqual(yield* refused.exited, 1)
      assert.strictEqual(system(), "")
      const unattended = yield* run(start)
      assert.strictEqual(yield* unattended.exited, 0, unattended.lines.join("\n"))
      assert.match(system(), installs("nats-server"))
      assert.notInclude(system(), "sudo")
    }))

  it.live("asks for the tests' programs too, and runs the tests without those it may not install", () =>
    Effect.gen(function*() {
      const { folder, run, system } = yield* makeMachine("ordinary")
      const test = [join(folder, "node_modules/vitest/vitest.mjs"), "run"]
      const refused = yield* run(test, { NATS_URL: "nats://127.0.0.1" })
      assert.strictEqual(yield* refused.exited, 0)
      assert.include(refused.lines, "it runs")
      const said = refused.lines.join("\n")
      assert.match(said, /^Chromium, .* is missing. To install it:\n {2}sudo .*install .*chromium$/m)
      assert.match(said, /^Prometheus, .* is missing. To install it:\n {2}sudo .*install .*prometheus$/m)
      assert.strictEqual(system(), "")
      const other = yield* run([...test, "test/bus"], { NATS_URL: "nats://127.0.0.1" })
      assert.strictEqual(yield* other.exited, 0)
      assert.deepStrictEqual(other.lines, ["it runs"])
      for (const folder of ["test/system/browser", "test/process/browser", "test/process"]) {
        const browser = yield* run([...test, folder], { NATS_URL: "nats://127.0.0.1" })
        assert.strictEqual(yield* browser.exited, 0)
        assert.match(browser.lines.join("\n"), /^Chromium, .* is missing/m, folder)
      }
      const allowed = yield* run(test, { NATS_URL: "nats://127.0.0.1", GATEWAY_INSTALL: "1" })
      assert.strictEqual(yield* allowed.exited, 0)
      for (const name of ["chromium", "prometheus"]) assert.match(system(), installs(name))
    }))

  for (const user of ["root", "ordinary"] as const) {
    for (const typed of ["n\\n", "\\n", "what\\n"]) {
      it.live(`takes ${typed} on a terminal as a no (${user})`, () =>
        Effect.gen(function*() {
          const { onTerminal, system } = yield* makeMachine(user)
          const refused = yield* onTerminal(typed, ["-p", "6*7"])
          assert.strictEqual(yield* refused.exited, 1)
          assert.match(refused.lines.join("\n"), /Install now\? \[y\/N\]/)
          assert.strictEqual(system(), "")
        }))
    }
    it.live(`takes y on a terminal as a yes (${user})`, () =>
      Effect.gen(function*() {
        const { onTerminal, system } = yield* makeMachine(user)
        const allowed = yield* onTerminal("y\\n", ["-p", "6*7"])
        assert.strictEqual(yield* allowed.exited, 0, allowed.lines.join("\n"))
        assert.match(allowed.lines.join("\n"), /\D42\D/)
        assert.match(system(), installs("nats-server"))
        assert.strictEqual(/^sudo env /m.test(system()), user === "ordinary")
      }))
  }
})
