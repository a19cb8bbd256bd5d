/** What a member may see: the scope fails closed. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { everything, keysWithin, ofTeams, ownersWithin } from "../../../services/console/access/Scopes.ts"
import { precedenceMistake } from "../../../services/console/handlers/KeyPrecedence.ts"
import * as Team from "../../../shared/teams/Team.ts"

const team = (id: string, name: string, parent: string | null = null) =>
  Effect.map(Team.make({ name, parent }), (made) => ({ ...made, id: `team_${id}` }))

const teams = Effect.map(
  Effect.all([
    team("org", "Organisation"),
    team("a", "Research", "team_org"),
    team("b", "Laboratory", "team_a"),
    team("c", "Twice", "team_org"),
    team("d", "Twice"),
    team("e", "Orphan", "team_deleted"),
    // passes for another team by its name
    team("f", "team_a")
  ]),
  Team.byId
)

describe("the scope of a member", () => {
  it.effect("has the teams that names or ids denote, and those below", () =>
    Effect.gen(function*() {
      const all = yield* teams
      const within = (wanted: ReadonlyArray<string>) => {
        const { has, isWhole } = ofTeams(all, wanted)
        assert.isFalse(isWhole)
        return [null, "", "team_unknown", ...all.keys()].filter(has)
      }
      assert.deepStrictEqual(within(["Research"]), ["team_a", "team_b"])
      assert.deepStrictEqual(within(["team_a"]), ["team_a", "team_b"])
      assert.deepStrictEqual(within(["Laboratory", "team_d"]), ["team_b", "team_d"])
      for (const nothing of [[], ["Twice"], ["research"], ["Deleted"], ["team_unknown"], ["Orphan"]]) {
        assert.deepStrictEqual(within(nothing), [], nothing.join())
      }
    }))

  it.effect("has keys and owners of tokens, but an owner of keys only if all its keys are of its teams", () =>
    Effect.gen(function*() {
      const scope = ofTeams(yield* teams, ["Research"])
      const keys = [
        { id: "key_1", owner: "key_1", team: "team_a" },
        { id: "key_2", owner: "key_1", team: "team_d" },
        { id: "key_3", owner: "key_3", team: "team_b" },
        { id: "key_4", owner: "key_4", team: null }
      ]
      const teamsOf = (id: string) =>
        id === "jwt_1" ? ["team_b", "team_a", "team_org"] : id === "jwt_2" ? ["team_org"] : []
      const ids = ["jwt_1", "jwt_2", "jwt_unknown", "key_1", "key_2", "key_3", "key_unknown", ""]
      assert.deepStrictEqual(ids.filter(keysWithin(scope, keys, teamsOf)), ["jwt_1", "key_1", "key_3"])
      assert.deepStrictEqual(ids.filter(keysWithin(everything, [], teamsOf)), ids)
      assert.deepStrictEqual([...ownersWithin(scope, keys)], ["key_3"])
    }))
})

describe("the precedence that a member chooses for a key", () => {
  it("is at most the team's", () => {
    assert.isUndefined(precedenceMistake({}, { weight: 5 }))
    assert.isUndefined(precedenceMistake({ weight: 5, priorityClass: "batch", batchConcurrency: 32 }, { weight: 5 }))
    assert.strictEqual(precedenceMistake({ weight: 6 }, { weight: 5 })?.field, "weight")
    assert.strictEqual(
      precedenceMistake({ priorityClass: "standard" }, { priorityClass: "batch" })?.field,
      "priorityClass"
    )
    assert.strictEqual(
      precedenceMistake({ batchConcurrency: 33 }, {})?.message,
      "batchConcurrency: must be at most 32, the team's default. Ask an administrator"
    )
  })
})
