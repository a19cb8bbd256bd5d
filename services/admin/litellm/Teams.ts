/** LiteLLM's organisations and teams as teams of the gateway, organisations above their teams. */
import { hash } from "node:crypto"
import * as Base62 from "../../../shared/keys/Base62.ts"
import type { ImportedTeam } from "../../../shared/teams/TeamStore.ts"
import { Allowances, type Omit } from "./Allowances.ts"
import type { Dump } from "./Dump.ts"
import { nameOf, type TeamTable } from "./Tables.ts"

/** A team. `isClosed` disables its keys, because a team itself cannot be disabled. */
export interface TeamOfLiteLlm extends ImportedTeam {
  readonly isClosed: boolean
}

/** Teams by id. Organisations come first, because they are the parents of teams. */
export type Teams = ReadonlyMap<string, TeamOfLiteLlm>

/** Derives a team's id from its row, so that a second import finds the team. */
const teamIdOf = (table: TeamTable, id: string): string =>
  `team_${Base62.encode(hash("sha256", JSON.stringify([table, id]), "buffer").subarray(0, 12))}`

/** The team that a row names, or else its organisation. Reports a missing one. */
export const teamOf = (
  teams: Teams,
  row: { readonly team_id?: string; readonly organization_id?: string },
  omit: Omit
): TeamOfLiteLlm | undefined => {
  const find = (table: TeamTable, column: keyof typeof row) => {
    const id = row[column]
    if (id === undefined) return undefined
    const team = teams.get(teamIdOf(table, id))
    if (team === undefined) omit(column, "is not in the dump: imported without it")
    return team
  }
  return find("LiteLLM_TeamTable", "team_id") ?? find("LiteLLM_OrganizationTable", "organization_id")
}

export const importTeams = (dump: Dump, accessGroups: ReadonlyMap<string, ReadonlyArray<string>>): Teams => {
  const teams = new Map<string, TeamOfLiteLlm>()
  const organisations = new Allowances("LiteLLM_OrganizationTable", dump, accessGroups)
  for (const row of dump.organisations) {
    const name = nameOf.LiteLLM_OrganizationTable(row)
    const { isClosed, settings } = organisations.of(row, organisations.omitFor(name))
    const id = teamIdOf("LiteLLM_OrganizationTable", row.organization_id)
    teams.set(id, { id, settings: { name, ...settings }, isClosed })
  }
  organisations.reportSpend()
  const allowances = new Allowances("LiteLLM_TeamTable", dump, accessGroups)
  for (const { team_id, ...row } of dump.teams) {
    const name = nameOf.LiteLLM_TeamTable({ team_id, ...row })
    const omit = allowances.omitFor(name)
    const { isClosed, settings } = allowances.of(row, omit)
    if (row.blocked === true) omit("blocked", "its keys are imported as disabled, but keys that it gets later are not")
    const parent = teamOf(teams, row, omit)
    const id = teamIdOf("LiteLLM_TeamTable", team_id)
    teams.set(id, {
      id,
      settings: { name, ...settings, ...(parent === undefined ? {} : { parent: parent.id }) },
      isClosed: isClosed || row.blocked === true || parent?.isClosed === true
    })
  }
  allowances.reportSpend()
  return teams
}
