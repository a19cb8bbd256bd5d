/**
 * Runs the tests of clients with each kind of provider, and writes into `README.md` how many there are for each pair. A test takes
 * part if one of its titles is `with a provider of NAME`; the first other title is its client.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

interface Report {
  readonly success: boolean
  readonly testResults: ReadonlyArray<{
    readonly assertionResults: ReadonlyArray<{
      readonly ancestorTitles: ReadonlyArray<string>
      readonly title: string
      readonly status: string
    }>
  }>
}

const providers = {
  openai: "OpenAI, chat",
  responses: "OpenAI, responses",
  anthropic: "Anthropic",
  gemini: "Gemini",
  cohere: "Cohere",
  local: "built-in engine"
} as const

const named = /^with a provider of (\w+)$/

const run = (): Report => {
  const folder = mkdtempSync(join(tmpdir(), "clients-"))
  try {
    const file = join(folder, "report.json")
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`]
    const options = ["run", "test/clients", "--testNamePattern=with a provider of", ...reporters]
    spawnSync(process.execPath, ["node_modules/vitest/vitest.mjs", ...options], { stdio: "inherit" })
    return JSON.parse(readFileSync(file, "utf8")) as Report
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const tableOf = ({ testResults }: Report): string => {
  const clients = new Map<string, Map<string, number>>()
  for (const { ancestorTitles, status, title } of testResults.flatMap(({ assertionResults }) => assertionResults)) {
    const titles = [...ancestorTitles, title]
    const [provider] = titles.flatMap((each) => named.exec(each)?.[1] ?? [])
    if (provider === undefined || status !== "passed") continue
    const client = titles.find((each) => !named.test(each)) ?? ""
    const counts = clients.get(client) ?? new Map<string, number>()
    clients.set(client, counts.set(provider, (counts.get(provider) ?? 0) + 1))
  }
  const row = (cells: ReadonlyArray<unknown>) => `| ${cells.join(" | ")} |`
  return [
    row(["client", ...Object.values(providers)]),
    row(["---", ...Object.values(providers).map(() => "---:")]),
    ...[...clients].toSorted(([a], [b]) => a.localeCompare(b)).map(([client, counts]) =>
      row([client, ...Object.keys(providers).map((provider) => counts.get(provider) ?? "")])
    )
  ].join("\n")
}

const report = run()
if (!report.success) {
  console.error("Tests failed: README.md is unchanged.")
  process.exit(1)
}
const readme = join(import.meta.dirname, "README.md")
const marked = /(<!-- matrix -->\n)[^]*?(\n<!-- \/matrix -->)/
writeFileSync(readme, readFileSync(readme, "utf8").replace(marked, (_, from, to) => `${from}${tableOf(report)}${to}`))
