/** An import of LiteLLM's example configuration and database: the gateway serves its models to clients with their old keys. */
import { assert, describe, it } from "@effect/vitest"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Gateway, workerSecrets } from "../../fixture/gateway/Gateway.ts"
import {
  budgetRow,
  configFile,
  dumpOf,
  keyOf,
  keyRow,
  organisationRow,
  type Tables,
  teamRow
} from "../../fixture/litellm/LiteLlm.ts"

/** The teams of some keys by the key's number. */
const teamOf: Readonly<Record<number, string>> = { 4: "search", 6: "search", 7: "ads", 8: "ads" }

const numbers = Array.from({ length: 40 }, (_, index) => index + 1)

/**
 * Forty keys: the second is blocked, the third has a list of models, the fourth and the sixth share a team's models and budget,
 * and the seventh and the eighth another team's limit.
 */
const tables: Tables = {
  LiteLLM_BudgetTable: [budgetRow("budget", { max_budget: 20, budget_duration: "30d" })],
  LiteLLM_OrganizationTable: [organisationRow("example", { organization_alias: "Example Ltd" })],
  LiteLLM_TeamTable: [
    teamRow("search", {
      team_alias: "Search",
      organization_id: "example",
      models: ["team-model-4", "team-model-6", "gpt-4o"],
      max_budget: 0.5,
      budget_duration: "1mo"
    }),
    teamRow("ads", { team_alias: "Ads", rpm_limit: 1 })
  ],
  LiteLLM_VerificationToken: numbers.map((number) =>
    keyRow(number, {
      blocked: number === 2,
      models: number === 3 ? ["team-model-3"] : [],
      team_id: teamOf[number] ?? null,
      budget_id: number === 5 ? "budget" : null
    })
  )
}

/** What a key is told instead of an answer. */
const refusals: Readonly<Record<number, readonly [status: number, message: string]>> = {
  2: [403, "disabled"],
  // the answer to the fourth key has cost more than the budget that both share
  6: [429, "The team 'Search' has"],
  8: [429, "The team 'Ads' has reached its limit of 1 requests per minute"]
}

const chat = (model: string) => ({ model, messages: [{ role: "user", content: "Hello" }] })

describe("an import from LiteLLM", () => {
  it.live("serves 60 models to clients with 40 keys that they had before", () =>
    Gateway.runHere(
      { workers: 0, environmentOf: (service) => service === "admin" ? { FAKE_API_BASE: baseUrl } : {} },
      async (gateway) => {
        baseUrl = gateway.provider.baseUrl
        const folder = await mkdtemp(join(tmpdir(), "import-"))
        try {
          const [dump, catalogue] = [join(folder, "dump.sql"), join(folder, "gateway.yaml")]
          await writeFile(dump, dumpOf(tables))
          const words = ["import", "litellm", configFile, "--database-dump", dump, "--out", catalogue]

          const rehearsal = await gateway.admin(...words, "--dry-run")
          assert.match(rehearsal, /3 teams, not created \(dry run\):\n +team_\w{12} +Example Ltd /)
          assert.include(rehearsal, "40 keys, not created (dry run)")
          assert.notInclude(await gateway.admin("keys", "list"), "key 1")

          const first = await gateway.admin(...words)
          assert.include(first, "3 teams created, 0 existed already")
          assert.include(first, "40 keys created, 0 existed already")
          assert.match(first, /config\.yaml:\d+ general_settings\.master_key: /)
          assert.notMatch(first, /written-down|a-password/)
          const listed = await gateway.admin("keys", "list")
          assert.match(listed, /20 USD\/month .*key 5\n/)
          const again = await gateway.admin(...words)
          assert.include(again, "0 teams created, 3 existed already")
          assert.include(again, "0 keys created, 40 existed already")
          assert.include(again, "has this content already")
          assert.strictEqual(await gateway.admin("keys", "list"), listed)

          const checked = await gateway.admin("config", "check", catalogue)
          assert.match(checked, /: 6\d models, \d+ providers/)
          const environment = { GATEWAY_CONFIG: catalogue, ...workerSecrets }
          const ingress = await gateway.startIngress({ GATEWAY_CONFIG: catalogue })
          await gateway.startWorker(environment)
          const ask = (key: string, model: string) =>
            gateway.request(chat(model), { ingress, headers: { authorization: `Bearer ${key}` } })
          for (const number of numbers) {
            // the key's own model, by the name that its deployment has at the provider
            const model = `team-model-${number === 2 ? 1 : Math.min(number, 36)}`
            const answer = await ask(keyOf(number), model)
            const body = await answer.text()
            const [status, message] = refusals[number] ?? [200, ""]
            assert.strictEqual(answer.status, status, `${number}: ${body}`)
            assert.include(body, message)
          }
          assert.strictEqual((await ask(keyOf(3), "team-model-1")).status, 403)
          assert.strictEqual((await ask(keyOf(4), "team-model-1")).status, 403)
          assert.strictEqual((await ask(keyOf(41), "team-model-1")).status, 401)
          assert.include(await readFile(catalogue, "utf8"), "model: upstream-1\n")
        } finally {
          await rm(folder, { recursive: true })
        }
      }
    ))
})

let baseUrl = ""
