/** The limits, models and budgets that apply to the requests of a key: its own, and those of the teams above it. */
import type { Limit } from "../../../shared/bounds/Limit.ts"
import { allows, type ApiKey } from "../../../shared/keys/ApiKey.ts"
import type { Team } from "../../../shared/teams/Team.ts"
import type { TeamTree } from "../../../shared/teams/TeamTree.ts"
import type { KeyLimitReached } from "../errors/IngressError.ts"

type Kind = KeyLimitReached["limit"]

export interface LevelLimit extends Limit {
  readonly kind: Kind
  /** The name of the team that has the limit; absent if it is the key's own. */
  readonly team?: string
}

/** The limits in the order in which requests take units from them: those of the key first, those of the root last. */
export type LevelLimits = ReadonlyArray<LevelLimit>

export const microsPerDollar = 1_000_000

/** A cost in the unit of budgets, a millionth of a US dollar. */
export const microsOf = (usd: number): number => Math.ceil(usd * microsPerDollar)

/**
 * The budget of a key or team. Its rest, by the spending counters, is a limit without a window. Running requests take their largest
 * possible cost from it.
 */
export class Budget {
  /** The id of the key or the team. */
  readonly id: string
  readonly usd: number
  readonly team: string | undefined
  #spentUsd = Number.NaN
  #rest: LevelLimit | undefined

  constructor(id: string, usd: number, team: string | undefined) {
    this.id = id
    this.usd = usd
    this.team = team
  }

  /** The rest of the budget. Returns the same object until the spending changes, because every request needs it. */
  restAfter(spentUsd: number): LevelLimit {
    if (this.#rest !== undefined && spentUsd === this.#spentUsd) return this.#rest
    this.#spentUsd = spentUsd
    return this.#rest = {
      kind: "budget",
      key: `${this.id}.budget`,
      // rounded, so that no error of a sum of costs remains
      limit: Math.max(0, Math.round((this.usd - spentUsd) * microsPerDollar)),
      windowMs: 0,
      isConsumed: true,
      ...(this.team === undefined ? {} : { team: this.team })
    }
  }
}

/** Computed once for each record of a key, and again if a team above it has changed. */
export interface Levels {
  readonly teams: ReadonlyArray<Team>
  readonly limits: LevelLimits
  /** Those of them that need no body: of requests, and of concurrent requests as well. */
  readonly requests: LevelLimits
  readonly atHead: LevelLimits
  readonly budgets: ReadonlyArray<Budget>
}

const kinds = [
  { kind: "concurrent", field: "concurrentRequests" },
  { kind: "requests", field: "requestsPerMinute" },
  { kind: "tokens", field: "tokensPerMinute" }
] as const

const noTeams: ReadonlyArray<Team> = []

/** A lookup by the key's record; `undefined` if the copy of the teams does not have the key's team yet. */
export const makeLevels = (tree: TeamTree["Service"], windowMs: number) => {
  const known = new WeakMap<ApiKey, Levels>()

  const limitsOf = (holder: ApiKey | Team, team?: string): LevelLimits =>
    kinds.flatMap(({ field, kind }) => {
      const limit = holder[field]
      if (limit === null) return []
      const key = `${holder.id}.${kind}`
      return [{
        kind,
        key,
        limit,
        windowMs: kind === "concurrent" ? 0 : windowMs,
        ...(team === undefined ? {} : { team })
      }]
    })

  const budgetOf = ({ id, monthlyBudgetUsd: usd }: ApiKey | Team, team?: string): ReadonlyArray<Budget> =>
    usd === null ? [] : [new Budget(id, usd, team)]

  return (key: ApiKey): Levels | undefined => {
    const found = known.get(key)
    if (found !== undefined && key.team === null) return found
    const teams = key.team === null ? noTeams : tree.pathOf(key.team)
    if (teams === undefined || found?.teams === teams) return teams && found
    const limits = [...limitsOf(key), ...teams.flatMap((team) => limitsOf(team, team.name))]
    const levels: Levels = {
      teams,
      limits,
      requests: limits.filter(({ kind }) => kind === "requests"),
      atHead: limits.filter(({ kind }) => kind !== "tokens"),
      budgets: [...budgetOf(key), ...teams.flatMap((team) => budgetOf(team, team.name))]
    }
    known.set(key, levels)
    return levels
  }
}

/** A key may use what it and all teams above it allow. */
export const allowsModel = (key: ApiKey, { teams }: Levels, model: string): boolean =>
  allows(key, model) && teams.every((team) => allows(team, model))

/** Whether the key may use only some models, or a budget applies to it. */
export const isLimited = (key: ApiKey, { budgets, teams }: Levels): boolean =>
  budgets.length > 0 || [key, ...teams].some(({ allowedModels }) => !allowedModels.includes("*"))
