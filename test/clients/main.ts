/**
 * Runs the tests of clients with each kind of provider, and writes into `README.md` how many there are for each pair. A test takes
 * part if one of its titles is `with a provider of NAME`; the first other title is its client. Every major version takes part.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { runVitest, type VitestReport } from "../fixture/runner/VitestRun.ts"

const providers = {
  openai: "OpenAI, chat",
  responses: "OpenAI, responses",
  anthropic: "Anthropic",
  gemini: "Gemini",
  cohere: "Cohere",
  local: "built-in engine"
} as const

const named = /^with a provider of (\w+)$/

const tableOf = ({ testResults }: VitestReport): string => {
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

const words = ["test/clients", "test/long/clients", "--testNamePattern=with a provider of"]
const { report } = runVitest(words, { CLIENT_MAJORS: "all" })
if (report?.success !== true) {
  console.error("Tests failed: README.md is unchanged.")
  process.exit(1)
}
const readme = join(import.meta.dirname, "README.md")
const marked = /(<!-- matrix -->\n)[^]*?(\n<!-- \/matrix -->)/
writeFileSync(readme, readFileSync(readme, "utf8").replace(marked, (_, from, to) => `${from}${tableOf(report)}${to}`))
