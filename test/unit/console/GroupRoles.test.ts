/** How groups and claims of an OpenID provider become people. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import * as GroupRoles from "../../../services/console/access/GroupRoles.ts"
import { groupsIn, nameIn } from "../../../services/console/signin/Claims.ts"

const text =
  "{ operators: admin, security: auditor, research: { member: Research }, all: { member: [Research, Support] } }"

describe("CONSOLE_OIDC_ROLES", () => {
  it.effect("gives a person the most powerful role, and a member all teams", () =>
    Effect.gen(function*() {
      const roles = yield* GroupRoles.parse(text)
      const cases: ReadonlyArray<
        readonly [groups: ReadonlyArray<string>, role: string, teams?: ReadonlyArray<string>]
      > = [
        [["research", "security", "operators"], "admin"],
        [["research", "security"], "auditor"],
        [["research"], "member", ["Research"]],
        [["research", "all", "other"], "member", ["Research", "Support"]]
      ]
      for (const [groups, role, teams = []] of cases) {
        assert.deepStrictEqual(GroupRoles.personOf(roles, groups), Option.some({ role, teams }) as never)
      }
      for (const groups of [[], ["other"], ["constructor"], ["Operators"]]) {
        assert.isTrue(Option.isNone(GroupRoles.personOf(roles, groups)))
      }
    }))

  it.effect("is refused with what is wrong", () =>
    Effect.gen(function*() {
      const wrong: ReadonlyArray<readonly [text: string, says: RegExp]> = [
        ["{", /^is not readable/],
        ["", /must be/],
        ["{}", /must/],
        ["{ a: owner }", /^a: /],
        ["{ a: { member: [] } }", /^a/],
        ["{ a: { member: Research, role: admin } }", /^a/]
      ]
      for (const [text, says] of wrong) assert.match(yield* Effect.flip(GroupRoles.parse(text)), says, text)
    }))
})

describe("claims", () => {
  it("have groups as a list or a text, under a name or a path", () => {
    const claims = {
      groups: ["a", 1, "b"],
      one: "a",
      realm_access: { roles: ["c"] },
      "https://example.com/groups": ["d"]
    }
    assert.deepStrictEqual(groupsIn(claims, "groups"), ["a", "b"])
    assert.deepStrictEqual(groupsIn(claims, "one"), ["a"])
    assert.deepStrictEqual(groupsIn(claims, "realm_access.roles"), ["c"])
    assert.deepStrictEqual(groupsIn(claims, "https://example.com/groups"), ["d"])
    for (const name of ["other", "realm_access.other", "groups.length", "constructor", "one.length"]) {
      assert.isUndefined(groupsIn(claims, name), name)
    }
  })

  it("name people only by what they cannot choose", () => {
    assert.strictEqual(
      nameIn({ email: "a@example.com", email_verified: true, preferred_username: "a" }),
      "a@example.com"
    )
    assert.strictEqual(nameIn({ email: "admin@example.com", preferred_username: "a", name: "Admin" }), "a")
    assert.isUndefined(nameIn({ name: "Admin", preferred_username: " \u0000\u202e " }))
    assert.strictEqual(nameIn({ preferred_username: `a\n\u202e${"b".repeat(300)}` })?.length, 200)
  })
})
