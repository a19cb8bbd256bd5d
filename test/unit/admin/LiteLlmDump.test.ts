/** Dumps of LiteLLM's database in all forms of pg_dump, and what becomes of the keys and teams in them. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, FileSystem, Schema } from "effect"
import { DumpReader, maxLineBytes } from "../../../services/admin/litellm/dump/DumpReader.ts"
import { fromArray, fromCopy } from "../../../services/admin/litellm/dump/DumpText.ts"
import { readDump } from "../../../services/admin/litellm/Dump.ts"
import { importKeys } from "../../../services/admin/litellm/Keys.ts"
import { importTeams } from "../../../services/admin/litellm/Teams.ts"
import { fingerprint } from "../../../shared/keys/ApiKey.ts"
import { TeamId } from "../../../shared/keys/KeySettings.ts"
import {
  budgetRow,
  dumpOf,
  forms,
  keyOf,
  keyRow,
  organisationRow,
  type Tables,
  teamRow
} from "../../fixture/litellm/LiteLlm.ts"

const isTeamId = Schema.is(TeamId)

/** Imports the teams and keys of a dump, whose access group `cheap` has two models. */
const importText = Effect.fnUntraced(
  function*(text: string) {
    const fs = yield* FileSystem.FileSystem
    const file = yield* fs.makeTempFileScoped()
    yield* fs.writeFileString(file, text)
    const dump = yield* readDump(file)
    const accessGroups = new Map([["cheap", ["small", "tiny"]]])
    const teams = importTeams(dump, accessGroups)
    const keys = importKeys(dump, accessGroups, teams)
    return { keys, teams: [...teams.values()], report: dump.omissions.report.join("\n") }
  },
  Effect.scoped,
  Effect.provide(NodeServices.layer)
)

const imported = (tables: Tables) => importText(dumpOf(tables))

/** The settings of a single key. */
const importKey = (row: Parameters<typeof keyRow>[1], tables: Tables = {}) =>
  Effect.map(imported({ ...tables, LiteLLM_VerificationToken: [keyRow(1, row)] }), ({ keys, report, teams }) => ({
    settings: keys[0]?.settings,
    teams,
    report
  }))

describe("a dump", () => {
  const strange = "a\ttab, a 'quote'; a \"double\" one, a \\ and a\nline {x}"
  for (const form of forms) {
    it.effect(`by ${form} has the same rows`, () =>
      Effect.gen(function*() {
        const rows = [keyRow(1, { key_alias: strange, models: ["gpt-4o", "a b", "c\"d"], blocked: true }), keyRow(2)]
        const logs = [{ id: "1", messages: strange }, { id: "2", messages: "COPY public.x (a) FROM stdin;" }]
        const { keys } = yield* importText(dumpOf({ LiteLLM_SpendLogs: logs, LiteLLM_VerificationToken: rows }, form))
        assert.deepStrictEqual(keys.map(({ fingerprint }) => fingerprint), [keyOf(1), keyOf(2)].map(fingerprint))
        assert.strictEqual(keys[0]?.settings.name, strange)
        assert.strictEqual(keys[0]?.settings.disabled, true)
      }))

    it(`by ${form} may arrive in pieces of any size`, () => {
      const bytes = new TextEncoder().encode(
        dumpOf({ LiteLLM_VerificationToken: [keyRow(1, { key_alias: strange })] }, form)
      )
      for (const size of [1, 7, 100]) {
        const names: Array<unknown> = []
        const reader = new DumpReader(() => true, (_, row) => names.push(row["key_alias"]))
        for (let at = 0; at < bytes.length; at += size) assert.isUndefined(reader.push(bytes.subarray(at, at + size)))
        assert.isUndefined(reader.end())
        assert.deepStrictEqual(names, [strange])
      }
    })
  }

  const wrong: ReadonlyArray<readonly [name: string, text: string, message: RegExp]> = [
    ["of another database", "SET client_encoding = 'UTF8';\n", /no table LiteLLM_VerificationToken/],
    ["in the custom format", "PGDMP\u0001", /pg_restore -f/],
    ["that is compressed", "\u001f\u008b", /gunzip/],
    ["in another encoding", "SET client_encoding = 'LATIN1';\n", /--encoding=UTF8/],
    ["that was cut", dumpOf({ LiteLLM_VerificationToken: [keyRow(1)] }).split("\\.")[0] ?? "", /incomplete/],
    [
      "with a wrong number",
      dumpOf({ LiteLLM_VerificationToken: [keyRow(1, { rpm_limit: "many" })] }),
      /LiteLLM_VerificationToken, row 1: rpm_limit: must be/
    ],
    ["without columns", "INSERT INTO public.\"LiteLLM_VerificationToken\" VALUES ('a');\n", /--column-inserts/]
  ]
  for (const [name, text, message] of wrong) {
    it.effect(`${name} is rejected`, () =>
      Effect.map(
        Effect.flip(importText(text)),
        (error) => assert.match(error.message, message)
      ))
  }

  it("keeps no line that is too long", () => {
    const reader = new DumpReader(() => true, () => {})
    assert.match(
      reader.push(new Uint8Array(maxLineBytes + 1).fill(0x61)) ?? "",
      /line 1 is longer .*exclude-table-data/
    )
  })

  it("has values in PostgreSQL's forms", () => {
    assert.strictEqual(fromCopy("\\N"), null)
    assert.strictEqual(fromCopy("\\101\\x42\\t\\\\N"), "AB\t\\N")
    assert.deepStrictEqual(fromArray("{}"), [])
    assert.deepStrictEqual(fromArray("{a,\"b,\\\"c\",d e}"), ["a", "b,\"c", "d e"])
    for (const text of ["a", "{a", "{a,}", "{{a}}", "{\"a}"]) assert.isUndefined(fromArray(text))
  })
})

describe("a key", () => {
  it.effect("keeps name, expiry, models and limits", () =>
    Effect.gen(function*() {
      const { report, settings } = yield* importKey({
        key_alias: "search team",
        expires: "2027-01-31 12:00:00.5",
        models: ["gpt-4o", "openai/*", "cheap"],
        rpm_limit: 60,
        tpm_limit: 100_000,
        max_parallel_requests: 5,
        max_budget: 25.5,
        budget_duration: "30d"
      })
      assert.deepStrictEqual(
        { ...settings, expiresAt: settings?.expiresAt && DateTime.formatIso(settings.expiresAt) },
        {
          name: "search team",
          expiresAt: "2027-01-31T12:00:00.500Z",
          allowedModels: ["gpt-4o", "openai/*", "small", "tiny"],
          requestsPerMinute: 60,
          tokensPerMinute: 100_000,
          concurrentRequests: 5,
          monthlyBudgetUsd: 25.5
        }
      )
      assert.strictEqual(report, "")
    }))

  it.effect("without limits may use every model", () =>
    Effect.map(importKey({}), ({ settings }) => assert.deepStrictEqual(settings, { name: "key 1" })))

  it.effect("has the limits of its budget unless it has its own", () =>
    Effect.gen(function*() {
      const LiteLLM_BudgetTable = [
        budgetRow("b", { max_budget: 10, budget_duration: "1mo", rpm_limit: 5, tpm_limit: 1000 })
      ]
      const { settings } = yield* importKey({ budget_id: "b", rpm_limit: 7 }, { LiteLLM_BudgetTable })
      assert.deepStrictEqual(settings, {
        name: "key 1",
        requestsPerMinute: 7,
        tokensPerMinute: 1000,
        monthlyBudgetUsd: 10
      })
    }))

  for (const budget_duration of ["7d", null]) {
    it.effect(`with a budget for ${budget_duration ?? "ever"} is imported without, and the report says so`, () =>
      Effect.gen(function*() {
        const { report, settings } = yield* importKey({ max_budget: 10, budget_duration })
        assert.deepStrictEqual(settings, { name: "key 1" })
        assert.include(
          report,
          `LiteLLM_VerificationToken.max_budget of key 1: not imported: 10 USD ${
            budget_duration === null ? "for ever" : "per 7d"
          }`
        )
      }))
  }

  for (const row of [{ blocked: true }, { max_budget: 0 }, { rpm_limit: 0 }, { models: ["no-default-models"] }]) {
    it.effect(`with ${JSON.stringify(row)} is disabled`, () =>
      Effect.map(importKey(row), ({ settings }) => assert.isTrue(settings?.disabled)))
  }

  it.effect("of LiteLLM's console, or without a hash, is left out", () =>
    Effect.gen(function*() {
      const rows = [keyRow(1, { team_id: "litellm-dashboard" }), keyRow(2, { token: "not hashed" })]
      const { keys, report } = yield* imported({ LiteLLM_VerificationToken: rows })
      assert.deepStrictEqual(keys, [])
      assert.include(report, "it belongs to LiteLLM's console")
      assert.include(report, "it is not the SHA-256 hash")
    }))

  it.effect("names in the report whatever has no counterpart", () =>
    Effect.gen(function*() {
      const { report } = yield* imported({
        LiteLLM_VerificationToken: Array.from({ length: 7 }, (_, index) =>
          keyRow(index, {
            allowed_routes: ["/v1/chat"],
            user_id: "u",
            metadata: "{\"tags\": [1]}",
            spend: 1,
            max_budget: 5,
            budget_duration: "30d"
          })),
        LiteLLM_UserTable: [{ user_id: "u" }],
        LiteLLM_ProxyModelTable: [{ model_id: "1", model_name: "from-the-database", litellm_params: "{}" }],
        LiteLLM_SpendLogs: [{ request_id: "1" }]
      })
      assert.include(
        report,
        "LiteLLM_VerificationToken.allowed_routes of key 0, key 1, key 2, key 3, key 4 and 2 more: "
      )
      assert.include(report, "LiteLLM_VerificationToken.metadata of")
      assert.include(report, "7.00 USD already spent do not count")
      assert.include(report, "1 row of LiteLLM_UserTable: users have no counterpart")
      assert.include(report, "LiteLLM_ProxyModelTable of from-the-database: models in the database are encrypted")
      assert.include(report, "1 row of LiteLLM_SpendLogs: past usage")
    }))
})

describe("a team", () => {
  const withTeam = (team: Parameters<typeof teamRow>[1], row: Parameters<typeof keyRow>[1] = {}, tables: Tables = {}) =>
    importKey({ team_id: "t", ...row }, { ...tables, LiteLLM_TeamTable: [teamRow("t", team)] })

  /** Stays the same for ever, because databases are imported more than once. */
  const id = "team_pJFKmPJ3ZELi"

  it.effect("keeps name, models, limits and budget, and its keys", () =>
    Effect.gen(function*() {
      const { report, settings, teams } = yield* withTeam({
        team_alias: "Search",
        models: ["gpt-4o", "cheap"],
        max_budget: 50,
        budget_duration: "30d",
        tpm_limit: 9,
        rpm_limit: 8,
        max_parallel_requests: 7,
        spend: 3
      }, { rpm_limit: 2 })
      const expected = {
        name: "Search",
        allowedModels: ["gpt-4o", "small", "tiny"],
        requestsPerMinute: 8,
        tokensPerMinute: 9,
        concurrentRequests: 7,
        monthlyBudgetUsd: 50
      } as const
      assert.deepStrictEqual(teams, [{ id, settings: expected, isClosed: false }])
      assert.isTrue(isTeamId(id))
      assert.deepStrictEqual(settings, { name: "key 1", team: id, requestsPerMinute: 2 })
      assert.strictEqual(
        report,
        "LiteLLM_TeamTable.spend of teams with a budget: budgets start at zero: 3.00 USD already spent do not count"
      )
    }))

  const lists: ReadonlyArray<
    readonly [own: ReadonlyArray<string>, expected: readonly [string, ...ReadonlyArray<string>] | undefined]
  > = [
    [[], undefined],
    [["all-team-models"], undefined],
    [["all-proxy-models"], undefined],
    [["b", "c"], ["b", "c"]]
  ]
  for (const [own, expected] of lists) {
    it.effect(`allows its models, and a key's ${JSON.stringify(own)} remain`, () =>
      Effect.map(withTeam({ models: ["a", "b"] }, { models: own }), ({ settings, teams }) => {
        assert.deepStrictEqual(settings?.allowedModels, expected)
        assert.deepStrictEqual(teams[0]?.settings.allowedModels, ["a", "b"])
      }))
  }

  for (const team of [{ blocked: true }, { rpm_limit: 0 }, { max_budget: 0 }, { models: ["no-default-models"] }]) {
    it.effect(`with ${JSON.stringify(team)} disables its keys, and the report says so`, () =>
      Effect.gen(function*() {
        const { report, settings } = yield* withTeam(team)
        assert.deepStrictEqual(settings, { name: "key 1", team: id, disabled: true })
        assert.match(report, /LiteLLM_TeamTable.\w+ of t: .*its keys are imported as disabled/)
      }))
  }

  it.effect("with a budget of another period is imported without, and the report says so", () =>
    Effect.gen(function*() {
      const { report, teams } = yield* withTeam({ max_budget: 10, budget_duration: "7d" })
      assert.deepStrictEqual(teams[0]?.settings, { name: "t" })
      assert.include(report, "LiteLLM_TeamTable.max_budget of t: not imported: 10 USD per 7d")
    }))

  it.effect("is below its organisation, which has the limits of its budget", () =>
    Effect.gen(function*() {
      const { keys, report, teams } = yield* imported({
        LiteLLM_VerificationToken: [
          keyRow(1, { team_id: "t" }),
          keyRow(2, { organization_id: "o" }),
          keyRow(3, { team_id: "t", organization_id: "o" })
        ].map((row) => ({ organization_id: null, ...row })),
        LiteLLM_TeamTable: [teamRow("t", { organization_id: "o" })],
        LiteLLM_OrganizationTable: [
          organisationRow("o", { organization_alias: "Example Ltd", budget_id: "b", models: ["a"], spend: 1 })
        ],
        LiteLLM_BudgetTable: [budgetRow("b", { max_budget: 10, budget_duration: "1mo", rpm_limit: 5 })]
      })
      const [organisation, team] = teams
      assert.deepStrictEqual(organisation?.settings, {
        name: "Example Ltd",
        allowedModels: ["a"],
        requestsPerMinute: 5,
        monthlyBudgetUsd: 10
      })
      assert.deepStrictEqual(team, { id, settings: { name: "t", parent: organisation?.id ?? null }, isClosed: false })
      assert.deepStrictEqual(keys.map(({ settings }) => settings.team), [id, organisation?.id, id])
      assert.strictEqual(
        report,
        "LiteLLM_OrganizationTable.spend of organisations with a budget: " +
          "budgets start at zero: 1.00 USD already spent do not count"
      )
    }))

  it.effect("of an organisation with a budget of 0 disables its keys", () =>
    Effect.map(
      withTeam({ organization_id: "o" }, {}, {
        LiteLLM_OrganizationTable: [organisationRow("o", { budget_id: "b" })],
        LiteLLM_BudgetTable: [budgetRow("b", { max_budget: 0 })]
      }),
      ({ settings }) => assert.isTrue(settings?.disabled)
    ))

  it.effect("or an organisation that is not in the dump is left out, and the report says so", () =>
    Effect.gen(function*() {
      const { report, settings, teams } = yield* withTeam({ organization_id: "o" }, { team_id: "other" })
      assert.deepStrictEqual(settings, { name: "key 1" })
      assert.deepStrictEqual(teams, [{ id, settings: { name: "t" }, isClosed: false }])
      assert.include(report, "LiteLLM_TeamTable.organization_id of t: is not in the dump: imported without it")
      assert.include(report, "LiteLLM_VerificationToken.team_id of key 1: is not in the dump: imported without it")
    }))
})
