/** What the documents name is there: files, folders, links and commands. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import packageJson from "../../package.json" with { type: "json" }

const repository = join(import.meta.dirname, "../..")
const documents = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "*.md"], {
  cwd: repository,
  encoding: "utf8"
}).split("\n").filter((path) => path !== "" && !path.startsWith("test/bench/results/"))

/** What is made by a command, and not there before. */
const built = new Set(["services/console/web/dist"])

const matches = (text: string, pattern: RegExp): ReadonlyArray<string> =>
  [...text.matchAll(pattern)].map(([, found]) => found ?? "")

describe.each(documents)("%s", (path) => {
  const text = readFileSync(join(repository, path), "utf8")

  it("names files that exist", () => {
    const named = matches(text, /`((?:services|shared|deploy|test)\/[\w./-]+)`/g)
    assert.deepStrictEqual(named.filter((file) => !built.has(file) && !existsSync(join(repository, file))), [])
  })

  it("links to what exists", () => {
    const links = matches(text, /\]\((?!https?:|#)([^)#\s]+)[^)]*\)/g)
    assert.deepStrictEqual(links.filter((link) => !existsSync(join(repository, dirname(path), link))), [])
  })

  it("names commands that package.json has", () => {
    const commands = matches(text, /npm run ([\w:-]+)/g)
    assert.deepStrictEqual(commands.filter((name) => !Object.hasOwn(packageJson.scripts, name)), [])
  })
})
