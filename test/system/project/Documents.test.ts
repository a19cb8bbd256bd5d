/** The documents name existing files, folders, links and commands. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Model, Target } from "../../../shared/catalogue/Model.ts"
import { Provider } from "../../../shared/catalogue/Provider.ts"
import packageJson from "../../../package.json" with { type: "json" }

const repository = join(import.meta.dirname, "../../..")
const documents = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
  cwd: repository,
  encoding: "utf8"
}).split("\n").filter((path) => path !== "" && !path.startsWith("test/bench/results/"))

/** Made by a command. */
const built = new Set(["services/console/web/dist"])

const matches = (text: string, pattern: RegExp): ReadonlyArray<string> =>
  [...text.matchAll(pattern)].map(([, found]) => found ?? "")

describe.each(documents)("%s", (path) => {
  const text = readFileSync(join(repository, path), "utf8")

  it("names files that exist", () => {
    const named = matches(text, /`((?:services|shared|deploy|test)\/[\w./-]+)`/g)
    assert.deepStrictEqual(named.filter((file) => !built.has(file) && !existsSync(join(repository, file))), [])
  })

  it("has no broken links", () => {
    const links = matches(text, /\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)
    assert.deepStrictEqual(links.filter((link) => !existsSync(join(repository, dirname(path), link))), [])
  })

  it("names commands of package.json", () => {
    const commands = matches(text, /npm run ([\w:-]+)/g)
    assert.deepStrictEqual(commands.filter((name) => !Object.hasOwn(packageJson.scripts, name)), [])
  })
})

/** Variables not meant for operators, but for the supervisor, npm, tests and the system. */
const internal = new Set([
  "GATEWAY_PARENT_PIPE",
  "GATEWAY_SERVICES",
  "GATEWAY_LIMIT_WINDOW_MS",
  "INIT_CWD",
  "PATH",
  "ESPEAK_DATA_PATH"
])

it("every environment variable that the code reads is in a document", () => {
  const sources = ["services", "shared", "deploy/local"].flatMap((folder) =>
    readdirSync(join(repository, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => readFileSync(join(repository, folder, file), "utf8"))
  ).join("\n")
  const read = [
    ...matches(sources, /Config\.\w+\((?:\[[^\]]*\]|\([^()]*\)|[^"()[\]])*"([A-Z][A-Z_]+)"/g),
    ...matches(sources, /\b(?:text|file)\("([A-Z][A-Z_]+)"/g)
  ].filter((name) => !name.startsWith("OTEL_"))
  assert.isAbove(new Set(read).size, 25)
  const documented = new Set(
    documents.flatMap((path) => matches(readFileSync(join(repository, path), "utf8"), /`([A-Z][A-Z_]+)`/g))
  )
  assert.deepStrictEqual([...new Set(read)].filter((name) => !documented.has(name) && !internal.has(name)), [])
})

it("the catalogue's document has every setting", () => {
  const text = readFileSync(join(repository, "shared/catalogue/README.md"), "utf8")
  /** A field's name, or those of its fields. */
  const namesOf = ([name, field]: readonly [string, object]): ReadonlyArray<string> => {
    const { fields } = "schema" in field ? field.schema as { readonly fields?: object } : {}
    return fields === undefined || name === "price" ? [name] : Object.keys(fields).map((inner) => `${name}.${inner}`)
  }
  const settings = [Provider, Model, Target].flatMap(({ fields }) => Object.entries(fields)).flatMap(namesOf)
  assert.isAbove(settings.length, 30)
  const rows = text.slice(text.indexOf("## All settings")).split("\n").filter((line) => line.startsWith("| `")).join(
    "\n"
  )
  assert.deepStrictEqual(settings.filter((name) => !rows.includes(`\`${name}\``)), [])
})
