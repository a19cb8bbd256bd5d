/**
 * The teams for which the record of a key's day counts events. All projectors take them from there, so that an event that is counted
 * again after a failure, or withdrawn, belongs to the same teams although its key has been moved.
 */
import { Effect, Schema } from "effect"

/** The teams from a page on, the nearest first. */
const Placement = Schema.Struct({ from: Schema.Int, teams: Schema.Array(Schema.String) })

/** In the order of the pages; empty in records from before teams were stored. */
export const Placements = Schema.Array(Placement).pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed([])))
export type Placements = typeof Placements.Type

/** How many are stored. A key that is moved more often during the ten minutes in which events are replaced is miscounted. */
const maxPlacements = 16

const isSame = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a.length === b.length && a.every((team, index) => team === b[index])

/** Adds the teams for the events of a page, unless the page has teams already. */
export const place = (placements: Placements, page: number, teams: ReadonlyArray<string>): Placements => {
  // later pages are those of a stream that was recreated
  const known = placements.filter(({ from }) => from <= page)
  const last = known.at(-1)
  if (last !== undefined && (last.from === page || isSame(last.teams, teams))) return known
  return [...known, { from: page, teams }].slice(-maxPlacements)
}

/** The teams for the events of a page. */
export const teamsIn = (placements: Placements, page: number): ReadonlyArray<string> =>
  (placements.findLast(({ from }) => from <= page) ?? placements[0])?.teams ?? []
