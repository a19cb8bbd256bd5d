/**
 * Runs a script of this project on a machine with only git, npm and some Node: installs the npm packages, then starts the script
 * with the project's Node.
 *
 *     node deploy/local/run.js                           only installs the npm packages
 *     node deploy/local/run.js <script> [arguments]      also needs nats-server, unless NATS_URL names a server, and for
 *                                                        the tests Chromium and promtool
 *
 * Scripts of the product get the packages that they need to run; every other script also gets the development packages.
 *
 * It installs system programs only with consent: it prints the missing program with its install command, and asks on a terminal.
 * Without a terminal it installs them as root, as in CI and containers, or with GATEWAY_INSTALL=1. GATEWAY_INSTALL=0 never installs.
 *
 * Plain JavaScript, because it runs before any installation, on any Node from 20 on. Exits with the script's code, or with 1 and one
 * line about what is missing.
 */
import { spawn, spawnSync } from "node:child_process"
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { constants as os } from "node:os"
import { delimiter, dirname, join, relative, resolve } from "node:path"
import { createInterface } from "node:readline/promises"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const oldestNode = 20
const projectNode = 24
const natsFolder = join(root, ".gateway", "nats-server")

/** Searched after PATH: Debian's nats-server is in /usr/sbin, which an ordinary user's PATH lacks. */
const systemFolders = ["/usr/local/sbin", "/usr/sbin", "/usr/local/bin", "/usr/bin", "/opt/homebrew/bin"]

class Missing extends Error {}

/** The full path of a program, or undefined. */
const which = (program) =>
  [...(process.env.PATH ?? "").split(delimiter), ...systemFolders, join(natsFolder, "usr/sbin")]
    .map((folder) => join(folder, program))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK)
        return true
      } catch {
        return false
      }
    })

/**
 * Runs a program and shows its title and elapsed time: in place on a terminal, otherwise a line every ten seconds. Stops it early if
 * its output shows that it cannot succeed.
 */
const attempt = (title, command, options = {}) =>
  new Promise((settle) => {
    const began = performance.now()
    const isTerminal = process.stderr.isTTY === true
    const show = () => {
      const seconds = Math.round((performance.now() - began) / 1000)
      const line = `${title} … ${seconds} s${options.detail === undefined ? "" : `, ${options.detail()}`}`
      process.stderr.write(isTerminal ? `\r\x1b[K${line}` : `${line}\n`)
    }
    show()
    const timer = setInterval(show, isTerminal ? 500 : 10_000)
    let output = ""
    const finish = (code) => {
      clearInterval(timer)
      process.off("SIGINT", stop)
      process.off("SIGTERM", stop)
      show()
      if (isTerminal) process.stderr.write("\n")
      settle({ succeeded: code === 0, output })
    }
    const stop = () => {
      child.kill("SIGTERM")
      process.exit(130)
    }
    process.on("SIGINT", stop)
    process.on("SIGTERM", stop)
    const child = spawn(command[0], command.slice(1), {
      cwd: options.cwd ?? root,
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
      stdio: ["ignore", "pipe", "pipe"]
    })
    const keep = (chunk) => {
      output = (output + chunk).slice(-20_000)
      if (options.isHopeless?.(output) === true) child.kill("SIGTERM")
    }
    child.stdout.on("data", keep)
    child.stderr.on("data", keep)
    child.on("error", (error) => {
      output = error.message
      finish(1)
    })
    child.on("close", finish)
  })

/** The first line of npm's error after its codes. */
const reason = (output) => {
  const errors = output.split("\n").filter((line) => /^npm (error|ERR!)/.test(line))
  const lines = errors.map((line) => line.replace(/^npm (error|ERR!)\s*/, ""))
  return lines.find((line) => !/^((code|errno|syscall|path) |$)/.test(line)) ?? output.trim().split("\n").at(-1)
}

/** Whether npm has failed eight times in a row. Without a network, it would retry each package for many minutes. */
const isHopeless = (output) => {
  const fetches = output.match(/^npm http fetch .+$/gm)?.slice(-8) ?? []
  return fetches.length === 8 && fetches.every((line) => line.includes(" failed with "))
}

const readPackages = (file) => {
  try {
    return JSON.parse(readFileSync(join(root, file), "utf8")).packages
  } catch {
    return undefined
  }
}

const platformNode = `node_modules/node-${process.platform}-${process.arch}`

/** Scripts that users run; all others test, check or measure. */
const isProduct = (script) => script !== undefined && /^(deploy|services)\//.test(relative(root, resolve(script)))

/**
 * The packages in the lockfile that must be installed. Optional ones are for other platforms or not required, except this
 * platform's Node; npm links the project's own folders.
 */
const needed = (wanted, withDevelopment) =>
  Object.entries(wanted).filter(([path, { dev, devOptional, link, optional }]) =>
    path.startsWith("node_modules/") && link !== true && (optional !== true || path === platformNode)
    && (withDevelopment || (dev !== true && devOptional !== true))
  )

/** Installs what the script needs. Development packages that are already there stay and are updated too. */
const installDependencies = async (script) => {
  const wanted = readPackages("package-lock.json")
  if (wanted === undefined) throw new Missing("package-lock.json is missing or unreadable: clone the project again")
  // npm writes this list as its last step
  const installed = readPackages("node_modules/.package-lock.json") ?? {}
  const withDevelopment = !isProduct(script) || Object.values(installed).some(({ dev }) => dev === true)
  const packages = needed(wanted, withDevelopment)
  if (packages.every(([path, { version }]) => installed[path]?.version === version)) return
  const npm = which("npm")
  if (npm === undefined) throw new Missing("npm is not in PATH: install it (on Debian: apt-get install npm)")

  const manifests = packages.map(([path]) => join(root, path, "package.json"))
  // `npm ci` fails if the lockfile lacks some platform's optional packages. This installs the locked versions too, and does not
  // change the lockfile.
  const scope = withDevelopment ? "--include=dev" : "--omit=dev"
  const install = [npm, "install", scope, "--no-save", "--no-progress", "--loglevel=http"]
  const patience = [
    "--fetch-retries=3",
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-factor=2",
    "--fetch-timeout=60000"
  ]
  const { succeeded, output } = await attempt("Installing dependencies", [...install, ...patience], {
    detail: () => `${manifests.filter((file) => existsSync(file)).length} of ${manifests.length} packages`,
    isHopeless
  })
  if (succeeded) return
  const offline = /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT/.exec(output)
  throw new Missing(
    offline === null
      ? `npm install failed: ${reason(output)}`
      : `the package registry could not be reached (${offline[0]}): connect this machine and start again`
  )
}

/** The project's Node, or the running one if there is no package for this platform and it is new enough. */
const findNode = () => {
  const own = join(root, platformNode, "bin/node")
  if (existsSync(own)) return own
  if (Number(process.versions.node.split(".")[0]) >= projectNode) return process.execPath
  throw new Missing(
    `Node ${projectNode} or newer is needed on ${process.platform} ${process.arch}, this is ${process.versions.node}: `
      + `install it from https://nodejs.org`
  )
}

/** Unpacks Debian's package into a folder of the project, without privileges and without starting a daemon. */
const unpackNatsServer = async () => {
  const lists = join(natsFolder, "lists")
  const ownLists = ["-o", `Dir::State::Lists=${lists}`, "-o", `Dir::Cache=${join(natsFolder, "cache")}`]
  mkdirSync(join(lists, "partial"), { recursive: true })
  mkdirSync(join(natsFolder, "cache", "archives", "partial"), { recursive: true })
  const get = (...args) => attempt("Downloading nats-server", ["apt-get", ...args], { cwd: natsFolder })
  const downloaded = (await get("download", "nats-server")).succeeded
    || ((await get(...ownLists, "update")).succeeded && (await get(...ownLists, "download", "nats-server")).succeeded)
  const archive = readdirSync(natsFolder).find((file) => file.endsWith(".deb"))
  if (downloaded && archive !== undefined) {
    await attempt("Unpacking nats-server", ["dpkg-deb", "-x", join(natsFolder, archive), natsFolder])
    rmSync(join(natsFolder, archive))
  }
  rmSync(lists, { recursive: true })
  rmSync(join(natsFolder, "cache"), { recursive: true })
}

const isRoot = process.getuid?.() === 0
const isTerminal = process.stdin.isTTY === true && process.stderr.isTTY === true

/** The words before a command for root, or undefined if this user cannot become root. */
const asRoot = () => {
  if (isRoot) return []
  if (which("sudo") === undefined) return undefined
  // without a terminal sudo must not ask for a password
  return isTerminal ? ["sudo"] : ["sudo", "-n"]
}

const byApt = (name, prefix) => {
  // no questions, and no daemon started
  const apt = [
    ...prefix,
    "env",
    "DEBIAN_FRONTEND=noninteractive",
    "RUNLEVEL=1",
    "apt-get",
    "-o",
    "DPkg::Lock::Timeout=60"
  ]
  const command = [...apt, "install", "-y", "--no-install-recommends", name]
  return {
    says: command.join(" "),
    run: async () => {
      // asks for the password before the progress line covers it
      if (isTerminal && prefix.length > 0) spawnSync("sudo", ["-v"], { stdio: "inherit" })
      // the package lists may be missing or outdated
      if ((await attempt(`Installing ${name}`, command)).succeeded) return
      await attempt("Updating the package lists", [...apt, "update"])
      await attempt(`Installing ${name}`, command)
    }
  }
}

/** The install command for a program as text and as a function; undefined without a known package manager. */
const installerOf = ({ apt, brew, program }) => {
  if (which("apt-get") !== undefined) {
    const prefix = asRoot()
    const canUnpack = program === "nats-server" && !isRoot && which("dpkg-deb") !== undefined
    if (prefix !== undefined) {
      const { run, says } = byApt(apt, prefix)
      return {
        says,
        run: () => run().then(() => canUnpack && which(program) === undefined ? unpackNatsServer() : undefined)
      }
    }
    if (!canUnpack) return undefined
    return {
      says: `apt-get download nats-server && dpkg-deb -x nats-server_*.deb ${natsFolder}`,
      run: unpackNatsServer
    }
  }
  if (brew === undefined || which("brew") === undefined) return undefined
  const command = ["brew", "install", brew]
  return { says: command.join(" "), run: () => attempt(`Installing ${brew}`, command) }
}

/** Asks on the terminal. Only a clear yes counts. */
const asks = async (question) => {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  // Ctrl-C, and the end of the input
  const ended = new Promise((resolve) => terminal.once("close", () => resolve("")))
  try {
    return /^y(es)?$/i.test((await Promise.race([terminal.question(question), ended])).trim())
  } finally {
    terminal.close()
  }
}

const consents = () => {
  switch (process.env.GATEWAY_INSTALL) {
    case "1":
      return true
    case "0":
      return false
    default:
      return isTerminal ? asks("Install now? [y/N] ") : isRoot
  }
}

/** Prints missing programs with their install commands, and runs those with consent. */
const install = async (missing) => {
  const planned = missing.map((program) => ({ ...program, installer: installerOf(program) }))
  for (const { installer, title } of planned) {
    process.stderr.write(
      `${title} is missing${installer === undefined ? "" : `. To install it:\n  ${installer.says}`}\n`
    )
  }
  const possible = planned.filter(({ installer }) => installer !== undefined)
  if (possible.length === 0) return
  if (await consents()) { for (const { installer } of possible) await installer.run() }
  else if (!isTerminal) {
    process.stderr.write("Nothing was installed: run the command, or set GATEWAY_INSTALL=1 to allow it\n")
  }
}

const natsServer = { program: "nats-server", title: "nats-server", apt: "nats-server", brew: "nats-server" }

/** Programs for some tests, which are skipped without them. */
const testPrograms = [
  {
    program: "chromium",
    title: "Chromium, for the tests in a browser,",
    apt: "chromium",
    tests: ["test/system/browser", "test/process/browser"]
  },
  {
    program: "promtool",
    title: "Prometheus, for the tests of alerts,",
    apt: "prometheus",
    tests: ["test/process/telemetry/Observability"]
  }
]

/** Whether this command line runs the tests of one of these files or folders. */
const runsTests = ([script = "", ...words], tests) => {
  if (!script.endsWith("vitest.mjs")) return false
  const filters = words.filter((word) => word !== "run" && !word.startsWith("-"))
  return filters.length === 0 || tests.some((path) => {
    const name = path.split("/").at(-1)
    return filters.some((filter) => filter.includes(name) || path.includes(filter))
  })
}

/** Installs missing programs with consent. Fails without nats-server. */
const ensurePrograms = async (args) => {
  const wanted = [
    ...(process.env.NATS_URL ? [] : [natsServer]),
    ...testPrograms.filter(({ program, tests }) =>
      runsTests(args, tests) && !(program === "chromium" && process.env.CHROMIUM)
    )
  ]
  const missing = wanted.filter(({ program }) => which(program) === undefined)
  if (missing.length > 0) await install(missing)
  if (process.env.NATS_URL) return undefined
  const server = which("nats-server")
  if (server !== undefined) return dirname(server)
  throw new Missing(
    "nats-server is needed: install it as above (elsewhere: https://nats.io/download), or set NATS_URL to a NATS server with "
      + "JetStream"
  )
}

/** Runs the script on this terminal, and exits like it. */
const run = (node, args, env) => {
  const child = spawn(node, args, { stdio: "inherit", env })
  // A terminal's Ctrl-C reaches the script directly, and a second one stops it immediately. Signals from npm to this process alone are
  // forwarded as SIGTERM, which is safe to repeat.
  for (const [signal, passed] of [["SIGINT", "SIGTERM"], ["SIGTERM", "SIGTERM"], ["SIGHUP", "SIGHUP"]]) {
    process.on(signal, () => child.kill(passed))
  }
  child.on("error", (error) => fail(`${node} cannot be run: ${error.message}`))
  child.on("exit", (code, signal) => process.exit(code ?? 128 + os.signals[signal]))
}

const fail = (message) => {
  process.stderr.write(`error: ${message}\n`)
  process.exit(1)
}

const main = async () => {
  if (Number(process.versions.node.split(".")[0]) < oldestNode) {
    throw new Missing(`Node ${oldestNode} or newer is needed to begin with, this is ${process.versions.node}`)
  }
  const args = process.argv.slice(2)
  await installDependencies(args[0])
  const node = findNode()
  if (args.length === 0) return
  const natsServerFolder = await ensurePrograms(args)
  const folders = [process.env.PATH, ...(natsServerFolder === undefined ? [] : [natsServerFolder])]
  // compiled modules save a third of the time of later starts
  const cache = join(root, "node_modules", ".cache", "compiled")
  run(node, args, { NODE_COMPILE_CACHE: cache, ...process.env, PATH: folders.join(delimiter) })
}

main().catch((error) => {
  if (error instanceof Missing) fail(error.message)
  throw error
})
