/** The tree of teams. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Option } from "effect"
import { byId, decode, encode, maxDepth, parentMistake, pathOf, type Team } from "../../../shared/teams/Team.ts"
import { defaults } from "../../../shared/teams/TeamSettings.ts"

const team = (id: string, parent: string | null): Team => ({
  ...defaults,
  id,
  name: id,
  parent,
  createdAt: DateTime.makeUnsafe(0),
  editedAt: null
})

const tree = byId([
  team("team_org", null),
  team("team_a", "team_org"),
  team("team_b", "team_org"),
  team("team_c", "team_a")
])

const chain = (length: number) =>
  byId(Array.from({ length }, (_, at) => team(`team_${at}`, at === 0 ? null : `team_${at - 1}`)))

describe("the path of a team", () => {
  it("leads from the team to the root", () => {
    assert.deepStrictEqual(pathOf(tree, "team_c")?.map(({ id }) => id), ["team_c", "team_a", "team_org"])
    assert.deepStrictEqual(pathOf(tree, "team_org")?.map(({ id }) => id), ["team_org"])
  })

  it("is unknown if a team is, or if the records contain a circle", () => {
    assert.isUndefined(pathOf(tree, "team_z"))
    assert.isUndefined(pathOf(byId([team("team_a", "team_z")]), "team_a"))
    assert.isUndefined(pathOf(byId([team("team_a", "team_b"), team("team_b", "team_a")]), "team_a"))
  })
})

describe("a team's parent", () => {
  it("may be any team that is not below it", () => {
    assert.isUndefined(parentMistake(tree, "team_c", "team_b"))
    assert.isUndefined(parentMistake(tree, "team_c", null))
    assert.isUndefined(parentMistake(tree, undefined, "team_c"))
    assert.include(parentMistake(tree, "team_a", "team_a"), "must not be the team itself")
    assert.include(parentMistake(tree, "team_org", "team_c"), "nor a team below it")
    assert.include(parentMistake(tree, undefined, "team_z"), "no team has the id team_z")
  })

  it("leaves a bounded number of levels", () => {
    const last = `team_${maxDepth - 2}`
    assert.isUndefined(parentMistake(chain(maxDepth - 1), undefined, last))
    assert.include(parentMistake(chain(maxDepth), undefined, `team_${maxDepth - 1}`), `at most ${maxDepth} levels`)
    // a team moves with the teams below it
    const both = new Map([...chain(maxDepth - 1), ...tree])
    assert.isUndefined(parentMistake(both, "team_c", last))
    assert.include(parentMistake(both, "team_a", last), `there would be ${maxDepth + 1}`)
  })
})

it("a record decodes with defaults for settings that it does not have", () => {
  const old = "{\"id\":\"team_a\",\"name\":\"a\",\"createdAt\":\"2026-11-01T00:00:00.000Z\"}"
  const decoded = Option.getOrThrow(decode(old))
  assert.deepStrictEqual(decoded, { ...team("team_a", null), name: "a", createdAt: DateTime.makeUnsafe("2026-11-01") })
  assert.deepStrictEqual(Option.getOrThrow(decode(encode(decoded))), decoded)
})
