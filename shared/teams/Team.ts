/** Teams: the format of their records, and the trees that they form above keys. */
import type { Option } from "effect"
import { DateTime, Effect, Schema } from "effect"
import * as Base62 from "../keys/Base62.ts"
import { TeamId, withDefault } from "../keys/KeySettings.ts"
import { defaults, TeamSettings } from "./TeamSettings.ts"

export const Team = Schema.Struct({
  id: TeamId,
  createdAt: Schema.DateTimeUtcFromString,
  /** `null` if never edited. */
  editedAt: withDefault(Schema.NullOr(Schema.DateTimeUtcFromString), null),
  ...TeamSettings.fields
})
export type Team = typeof Team.Type

const codec = Schema.fromJsonString(Team)
export const encode = Schema.encodeSync(codec)
/** `None` for a record in the format of a newer gateway. */
export const decode: (text: string) => Option.Option<Team> = Schema.decodeUnknownOption(codec)

/** The settings as JSON, for the audit log. */
export const settingsAsJson = Schema.encodeSync(TeamSettings)

export type NewTeam = Pick<TeamSettings, "name"> & Partial<TeamSettings>

/** A new team. The default id is random: `team_` and 12 base62 characters. */
export const make = (settings: NewTeam, id = `team_${Base62.random(12)}`): Effect.Effect<Team> =>
  Effect.map(DateTime.now, (createdAt) => ({
    ...defaults,
    ...settings,
    id,
    createdAt,
    editedAt: null
  }))

export type Teams = ReadonlyMap<string, Team>

export const byId = (teams: ReadonlyArray<Team>): Teams => new Map(teams.map((team) => [team.id, team]))

/** Maximum number of teams above a key: each one makes the key's requests a little slower. */
export const maxDepth = 8

/** A team and the teams above it, the nearest first; `undefined` if one is unknown or they are more than `maxDepth`, as in a cycle. */
export const pathOf = (teams: Teams, id: string): ReadonlyArray<Team> | undefined => {
  const path: Array<Team> = []
  for (let next: string | null = id; next !== null;) {
    const team = teams.get(next)
    if (team === undefined || path.length >= maxDepth) return undefined
    path.push(team)
    next = team.parent
  }
  return path
}

/** The number of levels of the tree below and including a team. */
const heightOf = (teams: Teams, id: string): number => {
  let level: ReadonlySet<string> = new Set([id])
  let height = 0
  // bounded, because the records could contain a cycle
  for (; level.size > 0 && height <= maxDepth; height++) {
    const above = level
    level = new Set(
      [...teams.values()].filter(({ parent }) => parent !== null && above.has(parent)).map(({ id }) => id)
    )
  }
  return height
}

/** Why a team cannot be below `parent`; `undefined` if it can. A new team has no id yet. */
export const parentMistake = (teams: Teams, id: string | undefined, parent: string | null): string | undefined => {
  if (parent === null) return undefined
  const path = pathOf(teams, parent)
  if (path === undefined) return `no team has the id ${parent}`
  if (path.some((team) => team.id === id)) return "must not be the team itself, nor a team below it"
  const depth = path.length + (id === undefined ? 1 : heightOf(teams, id))
  return depth > maxDepth ? `must leave at most ${maxDepth} levels of teams: there would be ${depth}` : undefined
}
