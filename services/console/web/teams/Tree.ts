/** Orders teams as a tree: each after the team that it is part of. */
import type { TeamView } from "../../api/Teams.ts"

export interface Branch {
  readonly team: TeamView
  /** The number of teams above it. */
  readonly depth: number
}

/** Teams whose parent is not listed come first, as roots do. */
export const branchesOf = (teams: ReadonlyArray<TeamView>): ReadonlyArray<Branch> => {
  const listed = new Set(teams.map(({ id }) => id))
  const below = Map.groupBy(teams, ({ parent }) => parent !== null && listed.has(parent) ? parent : null)
  const from = (parent: string | null, depth: number): ReadonlyArray<Branch> =>
    (below.get(parent) ?? []).flatMap((team) => [{ team, depth }, ...from(team.id, depth + 1)])
  return from(null, 0)
}
