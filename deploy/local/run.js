/**
 * Runs a script of this project on a machine that has nothing but git, npm and some Node: installs the npm packages, then
 * starts the script on the Node that the project asks for.
 *
 *     node deploy/local/run.js                           installs the npm packages, no more
 *     node deploy/local/run.js <script> [arguments]      also needs nats-server, unless NATS_URL names a server, and for
 *                                                        the tests Chromium and promtool
 *
 * Programs of the system are installed only with consent: it prints what is missing and the command that installs it, and
 * asks on a terminal. Without a terminal it installs them as root, as CI and containers do, or with GATEWAY_INSTALL=1.
 * GATEWAY_INSTALL=0 refuses in any case.
 *
 * The one plain JavaScript file here: it has to run before anything is installed, on any Node from 20 on. The exit code
 * is the script's own, or 1 with one line that says what is missing.
 */
import { spawn, spawnSync } from "node:child_process"
import { accessSync, constants, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { constants as os } from "node:os"
import { delimiter, dirname, join } from "node:path"
import { createInterface } from "node:readline/promises"
import { fileURLToPath } from "node:url"

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const oldestNode = 20
const projectNode = 24
const natsFolder = join(root, ".gateway", "nats-server")

/** Where programs may lie outside PATH: Debian's nats-server is in /usr/sbin, which the PATH of an ordinary user leaves out. */
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
 * Runs a program to its end while a line says what is being done and for how long: rewritten in place on a terminal,
 * added every ten seconds elsewhere. It is stopped early when its output says that it will not succeed.
 */
const attempt = (title, command, options = {}) =>
  new Promise((resolve) => {
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
      resolve({ succeeded: code === 0, output })
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

/** The first line in which npm says what is wrong, after those that only give it a code. */
const reason = (output) => {
  const errors = output.split("\n").filter((line) => /^npm (error|ERR!)/.test(line))
  const lines = errors.map((line) => line.replace(/^npm (error|ERR!)\s*/, ""))
  return lines.find((line) => !/^((code|errno|syscall|path) |$)/.test(line)) ?? output.trim().split("\n").at(-1)
}

/** Without a network npm would try each package for itself, for many minutes: eight failures in a row are enough. */
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

/** The packages that this machine cannot do without; the other optional ones are for other platforms, or a convenience. */
const needed = (wanted) =>
  Object.entries(wanted).filter(([path, { optional }]) => path !== "" && (optional !== true || path === platformNode))

/** Is what the lockfile asks for on this machine what npm last installed? npm writes its own list as its last step. */
const isInstalled = (wanted) => {
  const installed = readPackages("node_modules/.package-lock.json")
  return installed !== undefined && needed(wanted).every(([path, { version }]) => installed[path]?.version === version)
}

const installDependencies = async () => {
  const wanted = readPackages("package-lock.json")
  if (wanted === undefined) throw new Missing("package-lock.json is missing or unreadable: clone the project again")
  if (isInstalled(wanted)) return
  const npm = which("npm")
  if (npm === undefined) throw new Missing("npm is not in PATH: install it (on Debian: apt-get install npm)")

  const manifests = needed(wanted).map(([path]) => join(root, path, "package.json"))
  // Not `npm ci`: it takes every platform's optional packages to be in the lockfile, which a registry that lacks some of
  // them cannot provide. This installs what the lockfile says all the same, and leaves it as it is.
  const install = [npm, "install", "--no-save", "--no-progress", "--loglevel=http"]
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

/** The project's own Node, or the one that runs this file where no platform package exists and it is new enough. */
const findNode = () => {
  const own = join(root, platformNode, "bin/node")
  if (existsSync(own)) return own
  if (Number(process.versions.node.split(".")[0]) >= projectNode) return process.execPath
  throw new Missing(
    `Node ${projectNode} or newer is needed on ${process.platform} ${process.arch}, this is ${process.versions.node}: `
      + `install it from https://nodejs.org`
  )
}

/** Takes the server out of Debian's package into a folder of the project: needs no privileges and starts no daemon. */
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

/** The words before a command that only root may run, or undefined where this user cannot become root. */
const asRoot = () => {
  if (isRoot) return []
  if (which("sudo") === undefined) return undefined
  // without a terminal there is nobody to type a password
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
      // asks for the password before a line shows the progress in its place
      if (isTerminal && prefix.length > 0) spawnSync("sudo", ["-v"], { stdio: "inherit" })
      // a machine that has never asked for the package lists, or not for long, does not know the package
      if ((await attempt(`Installing ${name}`, command)).succeeded) return
      await attempt("Updating the package lists", [...apt, "update"])
      await attempt(`Installing ${name}`, command)
    }
  }
}

/** How this machine gets a program: the command as text, and what runs it. Undefined where only its user knows. */
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

/** Asks on the terminal. What is not a clear yes is a no. */
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

/** Prints what is missing with the command that installs it, and runs the commands if that is wanted. */
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

/** What some tests need. They say themselves that they were left out where it is not there. */
const testPrograms = [
  {
    program: "chromium",
    title: "Chromium, for the tests in a browser,",
    apt: "chromium",
    tests: "test/system/browser"
  },
  {
    program: "promtool",
    title: "Prometheus, for the tests of alerts,",
    apt: "prometheus",
    tests: "test/system/telemetry/Observability"
  }
]

/** Whether these words run tests, and those of this file or folder among them or alone. */
const runsTests = ([script = "", ...words], tests) => {
  if (!script.endsWith("vitest.mjs")) return false
  const filters = words.filter((word) => word !== "run" && !word.startsWith("-"))
  const name = tests.split("/").at(-1)
  return filters.length === 0 || filters.some((filter) => filter.includes(name) || tests.includes(filter))
}

/** Sees to it that the script finds what it needs, as far as it may; fails without nats-server. */
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

/** Runs the script with this terminal, and ends as it ends. */
const run = (node, args, env) => {
  const child = spawn(node, args, { stdio: "inherit", env })
  // A terminal's Ctrl-C reaches the script by itself, and a second one means "at once" to it. What npm or another program
  // sends to this process alone has to be passed on, as a request that can be made twice without harm.
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
  await installDependencies()
  const node = findNode()
  const args = process.argv.slice(2)
  if (args.length === 0) return
  const natsServerFolder = await ensurePrograms(args)
  const folders = [process.env.PATH, ...(natsServerFolder === undefined ? [] : [natsServerFolder])]
  // the second start of each process finds its modules compiled, which saves it a third of its time
  const cache = join(root, "node_modules", ".cache", "compiled")
  run(node, args, { NODE_COMPILE_CACHE: cache, ...process.env, PATH: folders.join(delimiter) })
}

main().catch((error) => {
  if (error instanceof Missing) fail(error.message)
  throw error
})
