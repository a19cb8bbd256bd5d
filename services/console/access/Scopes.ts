/** The scopes of roles: everything, or what belongs to a member's teams and the teams below them. */
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import type { Scope } from "../api/Admin.ts"
import * as Team from "../../../shared/teams/Team.ts"

export const everything: Scope = { isWhole: true, has: () => true }

/** The id of the team with this id or name; none if no team or several teams have the name. */
const idsOf = (teams: Team.Teams, wanted: string): ReadonlyArray<string> => {
  if (teams.has(wanted)) return [wanted]
  const named = [...teams.values()].filter(({ name }) => name === wanted)
  return named.length === 1 ? named.map(({ id }) => id) : []
}

/** The scope of a member of teams, which `wanted` names by ids or names. Teams that do not exist add nothing. */
export const ofTeams = (teams: Team.Teams, wanted: ReadonlyArray<string>): Scope => {
  const own = new Set(wanted.flatMap((name) => idsOf(teams, name)))
  const known = new Map<string, boolean>()
  return {
    isWhole: false,
    has: (team) => {
      if (team === null) return false
      const isKnown = known.get(team)
      if (isKnown !== undefined) return isKnown
      const has = Team.pathOf(teams, team)?.some(({ id }) => own.has(id)) ?? false
      known.set(team, has)
      return has
    }
  }
}

type Key = Pick<ApiKey, "id" | "owner" | "team">

/** The ids of the keys within a scope. */
export const keysWithin = (scope: Scope, keys: ReadonlyArray<Key>): ReadonlySet<string> =>
  new Set(keys.filter(({ team }) => scope.has(team)).map(({ id }) => id))

/** The owners whose keys are all within a scope: a key and its replacements share tasks and a webhook, but perhaps no team. */
export const ownersWithin = (scope: Scope, keys: ReadonlyArray<Key>): ReadonlySet<string> => {
  const outside = new Set(keys.filter(({ team }) => !scope.has(team)).map(({ owner }) => owner))
  return new Set(keys.map(({ owner }) => owner).filter((owner) => !outside.has(owner)))
}
