/** The scopes of roles: everything, or what belongs to a member's teams and the teams below them. */
import type { ApiKey } from "../../../shared/keys/ApiKey.ts"
import * as PrincipalRecord from "../../../shared/keys/PrincipalRecord.ts"
import type { Scope } from "../api/Admin.ts"
import * as Team from "../../../shared/teams/Team.ts"
import type { KeyTeams } from "../../../shared/usage/KeyTeams.ts"

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

/** Whether an id is that of a key, or of an owner of tokens, within a scope. Revoked keys are in no team. */
export const keysWithin = (
  scope: Scope,
  keys: ReadonlyArray<Key>,
  teamsOf: typeof KeyTeams.Service
): (id: string) => boolean => {
  if (scope.isWhole) return () => true
  const ids = new Set(keys.filter(({ team }) => scope.has(team)).map(({ id }) => id))
  return (id) => id.startsWith(PrincipalRecord.prefix) ? teamsOf(id).some(scope.has) : ids.has(id)
}

/** The owners whose keys are all within a scope: a key and its replacements share a webhook but may be in different teams. */
export const ownersWithin = (scope: Scope, keys: ReadonlyArray<Key>): ReadonlySet<string> => {
  const outside = new Set(keys.filter(({ team }) => !scope.has(team)).map(({ owner }) => owner))
  return new Set(keys.map(({ owner }) => owner).filter((owner) => !outside.has(owner)))
}
