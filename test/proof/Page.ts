/**
 * Writes the page `test/proof.md`: one section for each command that proves something, with date, machine, commit and output.
 *
 * A command replaces its own section and keeps those of the others.
 */
import { Console, Effect, FileSystem } from "effect"
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { machine } from "../bench/Results.ts"

const repository = join(import.meta.dirname, "../..")

const title = [
  "# Proof",
  "",
  "Each section is the output of a command that anyone can run. The command exits with an error if its claim does not hold."
].join("\n")

export interface Section {
  /** The section's heading, without `##`. A section of this heading is replaced; a new one is added at the end. */
  readonly heading: string
  /** The command with its settings, such as `BILLING_MINUTES=10 npm run billing`. */
  readonly command: string
  /** Markdown without headings of the levels 1 and 2, such as a paragraph, a table, and output in a code block. */
  readonly text: string
}

/** The page with the section of this heading replaced or added. `body` is the text below the heading. */
const withSection = (page: string, heading: string, body: string): string => {
  const [start = title, ...sections] = page.trim() === "" ? [] : page.trim().split(/\n(?=## )/)
  const own = `## ${heading}\n\n${body.trim()}`
  const isOwn = (section: string) => section.split("\n")[0] === `## ${heading}`
  const all = sections.some(isOwn) ? sections.map((section) => isOwn(section) ? own : section) : [...sections, own]
  return `${[start, ...all].map((part) => part.trim()).join("\n\n")}\n`
}

const git = (...words: ReadonlyArray<string>) =>
  execFileSync("git", words, { cwd: repository, encoding: "utf8" }).trim()

/** The commit, and whether files differ from it. The page itself may differ. */
const commit = Effect.try(() => {
  const isChanged = git("status", "--porcelain", "--", ".", ":!test/proof.md") !== ""
  return `commit ${git("rev-parse", "--short=8", "HEAD")}${isChanged ? " with changes" : ""}`
}).pipe(Effect.orElseSucceed(() => "unknown commit"))

/**
 * Prints the text and writes it to the page, below a line with the command, the date, the machine and the commit. Fails with a
 * `PlatformError` if the page cannot be read or written.
 */
export const writeSection = Effect.fn("Page.writeSection")(function*(
  { command, heading, text }: Section,
  page = join(repository, "test/proof.md")
) {
  const fs = yield* FileSystem.FileSystem
  yield* Console.log(`\n${text}`)
  const body = `\`${command}\`: ${yield* machine}, ${yield* commit}.\n\n${text}`
  const before = (yield* fs.exists(page)) ? yield* fs.readFileString(page) : ""
  yield* fs.writeFileString(page, withSection(before, heading, body))
})
