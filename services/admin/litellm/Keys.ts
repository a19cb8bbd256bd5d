/**
 * LiteLLM's keys as keys of the gateway. Both are stored by the SHA-256 of their secret, so that clients keep theirs.
 */
import { Schema } from "effect"
import type { NewKey } from "../../../shared/keys/ApiKey.ts"
import { ModelPattern } from "../../../shared/keys/KeySettings.ts"
import type { Dump } from "./Dump.ts"
import type { BudgetRow, KeyRow, TeamRow } from "./Tables.ts"

export interface ImportedKey {
  readonly fingerprint: string
  readonly settings: NewKey
}

const isFingerprint = (token: string): boolean => /^[0-9a-f]{64}$/.test(token)

/** Keys of LiteLLM's console, which last for a day. */
const consoleTeam = "litellm-dashboard"

const table = "LiteLLM_VerificationToken"

/** Periods that begin on the first of a month. */
const monthly = new Set(["30d", "1mo", "monthly"])

const isModelPattern = Schema.is(ModelPattern)

/** For a key without models, should it be enabled. */
const noModel = "none"

export const importKeys = (
  { budgets, keys, omissions, teams }: Dump,
  accessGroups: ReadonlyMap<string, ReadonlyArray<string>>
): ReadonlyArray<ImportedKey> => {
  const budgetById = new Map(budgets.map((budget) => [budget.budget_id, budget]))
  const teamById = new Map(teams.map((team) => [team.team_id, team]))
  let spend = 0
  const imported = keys.flatMap((row): ReadonlyArray<ImportedKey> => {
    const name = (row.key_alias ?? row.key_name ?? row.token.slice(0, 8)).slice(0, 200)
    const omit = (column: string, message: string) => omissions.add(`${table}.${column}`, message, name)
    if (row.team_id === consoleTeam) {
      omit("team_id", "not imported: it belongs to LiteLLM's console")
      return []
    }
    if (!isFingerprint(row.token)) {
      omit("token", "not imported: it is not the SHA-256 hash of a key")
      return []
    }
    const team = row.team_id === undefined ? undefined : teamById.get(row.team_id)
    if (row.team_id !== undefined && team === undefined) omit("team_id", "there is no such team: imported without it")
    const budget = row.budget_id === undefined ? undefined : budgetById.get(row.budget_id)
    if (row.budget_id !== undefined && budget === undefined) {
      omit("budget_id", "there is no such budget: imported without it")
    }
    const limits = limitsOf(row, budget, omit)
    const models = modelsOf(row, team, accessGroups, omit)
    if (limits.monthlyBudgetUsd !== undefined) spend += row.spend ?? 0
    return [{
      fingerprint: row.token,
      settings: {
        name,
        ...limits,
        ...(row.expires === undefined ? {} : { expiresAt: row.expires }),
        ...(models.includes("*") ? {} : { allowedModels: [models[0] ?? noModel, ...models.slice(1)] as const }),
        ...(row.blocked === true || team?.blocked === true || models.length === 0 ? { disabled: true } : {})
      }
    }]
  })
  if (spend > 0) {
    omissions.add(
      `${table}.spend`,
      `budgets begin anew: ${spend.toFixed(2)} USD that are spent do not count`,
      "keys with a budget"
    )
  }
  return imported
}

type Omit = (column: string, message: string) => void

/** The key's own limits, or else those of its budget. */
const limitsOf = (row: KeyRow, budget: BudgetRow | undefined, omit: Omit): Partial<NewKey> => {
  const limit = (name: "rpm_limit" | "tpm_limit" | "max_parallel_requests"): Partial<NewKey> => {
    const value = row[name] ?? budget?.[name]
    if (value === undefined) return {}
    if (value >= 1) return { [limitNames[name]]: Math.floor(value) }
    omit(name, "a limit of 0: imported as a disabled key")
    return { disabled: true }
  }
  return {
    ...limit("rpm_limit"),
    ...limit("tpm_limit"),
    ...limit("max_parallel_requests"),
    ...budgetOf(row.max_budget ?? budget?.max_budget, row.budget_duration ?? budget?.budget_duration, omit)
  }
}

const limitNames = {
  rpm_limit: "requestsPerMinute",
  tpm_limit: "tokensPerMinute",
  max_parallel_requests: "concurrentRequests"
} as const

const budgetOf = (dollars: number | undefined, period: string | undefined, omit: Omit): Partial<NewKey> => {
  if (dollars === undefined) return {}
  if (dollars <= 0) {
    omit("max_budget", "a budget of 0: imported as a disabled key")
    return { disabled: true }
  }
  if (period !== undefined && monthly.has(period.trim().toLowerCase())) return { monthlyBudgetUsd: dollars }
  const stated = `${dollars} USD ${period === undefined ? "for ever" : `per ${period}`}`
  omit("max_budget", `not imported: ${stated}, but budgets are per month. Set one by \`npm run keys -- edit\``)
  return {}
}

/** `*` for all models; empty for none. */
const listed = (
  names: ReadonlyArray<string> | undefined,
  all: ReadonlyArray<string>,
  accessGroups: ReadonlyMap<string, ReadonlyArray<string>>
): ReadonlyArray<string> => {
  if (names === undefined || names.length === 0) return all
  return names.flatMap((name) => {
    if (name === "all-proxy-models") return ["*"]
    if (name === "all-team-models") return all
    return name === "no-default-models" ? [] : accessGroups.get(name) ?? [name]
  })
}

const modelsOf = (
  row: KeyRow,
  team: TeamRow | undefined,
  accessGroups: ReadonlyMap<string, ReadonlyArray<string>>,
  omit: Omit
): ReadonlyArray<string> => {
  const ofTeam = listed(team?.models, ["*"], accessGroups)
  const own = listed(row.models, ofTeam, accessGroups)
  const both = ofTeam.includes("*") ? own : own.includes("*") ? ofTeam : own.filter((name) => ofTeam.includes(name))
  const usable = [...new Set(both)].filter((name) => isModelPattern(name))
  if (usable.length < new Set(both).size) omit("models", "patterns with a * that is not at the end are left out")
  if (usable.length === 0) omit("models", "it may use no model: imported as a disabled key")
  return usable
}
