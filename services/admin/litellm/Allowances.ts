/** Converts limits, budgets and allowed models, which LiteLLM's keys, teams and organisations have in common. */
import { Schema } from "effect"
import { type KeySettings, ModelPattern } from "../../../shared/keys/KeySettings.ts"
import type { Dump } from "./Dump.ts"
import type { BudgetRow, LimitColumns, OwnerTable } from "./Tables.ts"

/** The settings that keys and teams have in common. A row may lack some. */
type Settings = Partial<
  Pick<
    KeySettings,
    "requestsPerMinute" | "tokensPerMinute" | "concurrentRequests" | "monthlyBudgetUsd" | "allowedModels"
  >
>

export interface Allowance {
  readonly settings: Settings
  /** Whether the row allows no request: a limit or the budget is 0, or no model is allowed. */
  readonly isClosed: boolean
}

interface Row extends LimitColumns {
  readonly budget_id?: string
  readonly models?: ReadonlyArray<string>
  readonly spend?: number
}

/** Reports that a column of the row is not carried over as it is. */
export type Omit = (column: string, message: string) => void

interface Wording {
  readonly plural: string
  /** How a row that allows no request is imported. */
  readonly closed: string
  /** How to set a budget. */
  readonly edit: string
}

const ofTeams = { closed: "its keys are imported as disabled", edit: "on the page Teams of the console" }
const wordings: Readonly<Record<OwnerTable, Wording>> = {
  LiteLLM_VerificationToken: {
    plural: "keys",
    closed: "imported as a disabled key",
    edit: "by `npm run keys -- edit`"
  },
  LiteLLM_TeamTable: { plural: "teams", ...ofTeams },
  LiteLLM_OrganizationTable: { plural: "organisations", ...ofTeams }
}

const limitNames = {
  rpm_limit: "requestsPerMinute",
  tpm_limit: "tokensPerMinute",
  max_parallel_requests: "concurrentRequests"
} as const
const limitColumns = ["rpm_limit", "tpm_limit", "max_parallel_requests"] as const

/** Periods that begin on the first of a month. */
const monthly = new Set(["30d", "1mo", "monthly"])

/** LiteLLM's names for all models, and for all models of the key's team. */
const allModels = new Set(["all-proxy-models", "all-team-models"])

const isModelPattern = Schema.is(ModelPattern)

/** Stands in for an empty list of models, which the gateway does not accept. */
const noModel = "none"

/** Reads the rows of one table. */
export class Allowances {
  readonly #table: OwnerTable
  readonly #wording: Wording
  readonly #dump: Dump
  readonly #budgets: ReadonlyMap<string, BudgetRow>
  readonly #accessGroups: ReadonlyMap<string, ReadonlyArray<string>>
  #spentUsd = 0

  constructor(table: OwnerTable, dump: Dump, accessGroups: ReadonlyMap<string, ReadonlyArray<string>>) {
    this.#table = table
    this.#wording = wordings[table]
    this.#dump = dump
    this.#budgets = new Map(dump.budgets.map((budget) => [budget.budget_id, budget]))
    this.#accessGroups = accessGroups
  }

  /** Returns the function that reports columns of the row with this name. */
  omitFor(name: string): Omit {
    return (column, message) => this.#dump.omissions.add(`${this.#table}.${column}`, message, name)
  }

  of(row: Row, omit: Omit): Allowance {
    const budget = row.budget_id === undefined ? undefined : this.#budgets.get(row.budget_id)
    if (row.budget_id !== undefined && budget === undefined) {
      omit("budget_id", "the dump has no such budget: imported without it")
    }
    const parts = [this.#limits(row, budget, omit), this.#budget(row, budget, omit), this.#models(row, omit)]
    return {
      settings: Object.assign({}, ...parts.map(({ settings }) => settings)) as Settings,
      isClosed: parts.some(({ isClosed }) => isClosed)
    }
  }

  /** Reports how much of the imported budgets was already spent. Call it after the last row. */
  reportSpend(): void {
    if (this.#spentUsd === 0) return
    this.omitFor(`${this.#wording.plural} with a budget`)(
      "spend",
      `budgets start at zero: ${this.#spentUsd.toFixed(2)} USD already spent do not count`
    )
  }

  /** The row's own limits, or else those of its budget. */
  #limits(row: Row, budget: BudgetRow | undefined, omit: Omit): Allowance {
    const limits = limitColumns.flatMap((column) => {
      const value = row[column] ?? budget?.[column]
      return value === undefined ? [] : [{ column, value: Math.floor(value) }]
    })
    const zeros = limits.filter(({ value }) => value < 1)
    for (const { column } of zeros) omit(column, `a limit of 0: ${this.#wording.closed}`)
    return {
      settings: Object.fromEntries(
        limits.filter(({ value }) => value >= 1).map(({ column, value }) => [limitNames[column], value])
      ),
      isClosed: zeros.length > 0
    }
  }

  #budget(row: Row, budget: BudgetRow | undefined, omit: Omit): Allowance {
    const dollars = row.max_budget ?? budget?.max_budget
    const period = row.budget_duration ?? budget?.budget_duration
    if (dollars === undefined) return { settings: {}, isClosed: false }
    if (dollars <= 0) {
      omit("max_budget", `a budget of 0: ${this.#wording.closed}`)
      return { settings: {}, isClosed: true }
    }
    if (period !== undefined && monthly.has(period.trim().toLowerCase())) {
      this.#spentUsd += row.spend ?? 0
      return { settings: { monthlyBudgetUsd: dollars }, isClosed: false }
    }
    const stated = `${dollars} USD ${period === undefined ? "for ever" : `per ${period}`}`
    omit("max_budget", `not imported: ${stated}, but budgets are per month. Set one ${this.#wording.edit}`)
    return { settings: {}, isClosed: false }
  }

  /** In LiteLLM, an empty list allows all models. */
  #models({ models = [] }: Row, omit: Omit): Allowance {
    const names = new Set(models.flatMap((name) => {
      if (allModels.has(name)) return ["*"]
      return name === "no-default-models" ? [] : this.#accessGroups.get(name) ?? [name]
    }))
    if (models.length === 0 || names.has("*")) return { settings: {}, isClosed: false }
    const usable = [...names].filter((name) => isModelPattern(name))
    if (usable.length < names.size) omit("models", "patterns with a * that is not at the end are left out")
    if (usable.length === 0) omit("models", `no model is allowed: ${this.#wording.closed}`)
    const [first = noModel, ...others] = usable
    return { settings: { allowedModels: [first, ...others] }, isClosed: usable.length === 0 }
  }
}
