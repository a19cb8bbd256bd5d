/**
 * Starts `main.ts`, and with it all services, from bundles. From sources, each process would take twice the CPU time to start and
 * 50 MB more memory, because it would read modules one by one and load Node's TypeScript compiler.
 *
 * The bundles are in a folder named after a hash of their sources, so they are made again after any change, and a running gateway
 * keeps its own.
 *
 * Plain JavaScript, so that this process does not load the compiler either.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
const cache = join(root, "node_modules/.cache/bundles")

/** How many folders of bundles to keep: for gateways that may still run, and for branches that a developer switches between. */
const kept = 3

const sources = ["deploy/image", "deploy/local", "services", "shared", "package-lock.json"]

/** The files below a path that bundles may consist of. The console builds its web app itself. */
const filesIn = (path) => {
  if (!statSync(join(root, path)).isDirectory()) return [path]
  if (path === "services/console/web") return []
  return readdirSync(join(root, path)).toSorted().flatMap((name) => filesIn(`${path}/${name}`))
}

const fingerprint = () => {
  const hash = createHash("sha256")
  for (const file of sources.flatMap(filesIn)) hash.update(file).update("\0").update(readFileSync(join(root, file)))
  return hash.digest("hex").slice(0, 16)
}

/** Makes the bundles. If another start makes the same ones at the same time, the first to rename its folder wins. */
const make = (folder) => {
  const fresh = `${folder}-${process.pid}`
  mkdirSync(cache, { recursive: true })
  const words = [join(root, "deploy/image/bundle.ts"), fresh, "start=deploy/local/main.ts"]
  const { error, status, stderr } = spawnSync(process.execPath, words, { stdio: ["ignore", "ignore", "pipe"] })
  if (status !== 0) {
    process.stderr.write(`error: the services cannot be bundled: ${error?.message ?? stderr}\n`)
    process.exit(1)
  }
  try {
    renameSync(fresh, folder)
  } catch {
    rmSync(fresh, { recursive: true })
  }
  const old = readdirSync(cache).map((name) => join(cache, name)).filter((each) => each !== folder)
  const lastUse = new Map(old.map((each) => [each, statSync(each).mtimeMs]))
  old.sort((a, b) => lastUse.get(b) - lastUse.get(a))
  for (const each of old.slice(kept - 1)) rmSync(each, { recursive: true, force: true })
}

const folder = join(cache, fingerprint())
if (existsSync(folder)) utimesSync(folder, new Date(), new Date())
else make(folder)

await import(pathToFileURL(join(folder, "start.js")).href)
