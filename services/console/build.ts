/**
 * Builds the console's web app into `web/dist` if its sources have changed.
 *
 *     node services/console/build.ts
 */
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const project = join(import.meta.dirname, "../..")
const web = join(import.meta.dirname, "web")
const dist = join(web, "dist")

/** The app's sources. */
const sources = [
  "services/console/build.ts",
  "services/console/api",
  "services/console/web",
  "shared/contract",
  "shared/keys",
  "shared/telemetry/Attributes.ts",
  "shared/usage",
  "package-lock.json"
]

const filesIn = (path: string): ReadonlyArray<string> => {
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path).toSorted().flatMap((name) =>
    name.startsWith("dist") || name === "node_modules" ? [] : filesIn(join(path, name))
  )
}

const fingerprint = (): string => {
  const hash = createHash("sha256")
  for (const source of sources) {
    for (const file of filesIn(join(project, source))) hash.update(file).update("\0").update(readFileSync(file))
  }
  return hash.digest("hex")
}

const isBuilt = (sources: string): boolean => {
  try {
    return readFileSync(join(dist, "sources"), "utf8") === sources
  } catch {
    return false
  }
}

const wanted = fingerprint()
if (!isBuilt(wanted)) {
  const began = performance.now()
  // also for tests, whose runner has set it to "test": React would be built for development
  process.env["NODE_ENV"] = "production"
  const { build } = await import("vite")
  const fresh = `${dist}-${process.pid}`
  await build({
    configFile: false,
    root: web,
    // all of vite's warnings concern libraries
    logLevel: "error",
    // the server replaces it with a fresh nonce in each response
    html: { cspNonce: "CSP_NONCE" },
    build: {
      outDir: fresh,
      emptyOutDir: true,
      // the content security policy forbids data URLs for scripts and fonts
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      chunkSizeWarningLimit: 2_000
    }
  })
  writeFileSync(join(fresh, "sources"), wanted)
  const old = `${fresh}-old`
  // a concurrent build of the same sources may have finished first, or may finish between any two of these steps
  if (!isBuilt(wanted)) {
    try {
      renameSync(dist, old)
    } catch {
      // nothing is there, or the other build has moved it away
    }
    try {
      renameSync(fresh, dist)
    } catch (cause) {
      if (!isBuilt(wanted)) throw cause
    }
  }
  for (const folder of [fresh, old]) rmSync(folder, { recursive: true, force: true })
  process.stdout.write(`built the console's web app in ${((performance.now() - began) / 1_000).toFixed(1)} s\n`)
}
