/**
 * Bundles the services: a bundle reads 30 files when it starts, not a thousand, and takes half the CPU time. The image, the tests,
 * the bench and `npm start` run the bundles.
 *
 *     node deploy/image/bundle.ts <folder> [<name>=<source> ...]
 *
 * writes `<folder>/<service>.js` and, for Node's command line, `<folder>/<service>.flags`, `<folder>/<name>.js` for other programs, and
 * the parts that they share. The folder may be renamed but not moved: a bundle finds files beside its sources, such as the console's
 * web app, by the path from the folder.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { build, type Plugin } from "rolldown"
import { nodeFlagsOf } from "../../shared/process/NodeFlags.ts"

const project = join(import.meta.dirname, "../..")

/** Matches packages of many small modules. The others stay in `node_modules`: native code, and code that reads files of its own. */
const bundled = /^(effect|@effect|@nats-io)(\/|$)/

const isPackage = (id: string): boolean => /^[@a-z]/.test(id)

/** Lets a source find the files beside it, although its code has moved to the folder. */
const keepNeighbours = (folder: string): Plugin => ({
  name: "keep-neighbours",
  transform: {
    filter: { code: "import.meta.dirname" },
    handler: (code, id) => {
      const path = JSON.stringify(`/${relative(folder, dirname(id))}`)
      return code.replaceAll("import.meta.dirname", `(import.meta.dirname + ${path})`)
    }
  }
})

/** Replaces the file atomically, because a service may be reading it. */
const replace = (file: string, code: string): void => {
  if (existsSync(file) && readFileSync(file, "utf8") === code) return
  const fresh = `${file}-${process.pid}`
  writeFileSync(fresh, code)
  renameSync(fresh, file)
}

/** Bundles all services and these other programs into this folder, and removes everything else there. */
export const bundle = async (folder: string, others: Readonly<Record<string, string>> = {}): Promise<void> => {
  const services = readdirSync(join(project, "services")).filter((name) =>
    existsSync(join(project, "services", name, "main.ts"))
  )
  const { output } = await build({
    cwd: project,
    platform: "node",
    write: false,
    input: { ...Object.fromEntries(services.map((name) => [name, `services/${name}/main.ts`])), ...others },
    external: (id) => isPackage(id) && !bundled.test(id),
    plugins: [keepNeighbours(folder)],
    output: { format: "esm", comments: false, entryFileNames: "[name].js", chunkFileNames: "[name]-[hash].js" }
  })
  mkdirSync(folder, { recursive: true })
  const files = new Map(output.flatMap((file) => file.type === "chunk" ? [[file.fileName, file.code] as const] : []))
  for (const name of services) files.set(`${name}.flags`, nodeFlagsOf(name).join(" "))
  for (const [name, code] of files) replace(join(folder, name), code)
  for (const name of readdirSync(folder)) if (!files.has(name)) rmSync(join(folder, name), { recursive: true })
}

if (import.meta.main) {
  const [folder = ".", ...others] = process.argv.slice(2)
  await bundle(resolve(folder), Object.fromEntries(others.map((each) => each.split("="))))
}
