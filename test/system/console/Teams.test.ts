/** The admin API for teams, and how keys belong to them. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const gateway = sharedGateway()
let client: ConsoleClient

beforeAll(async () => {
  const { port } = await gateway().startConsole()
  client = await ConsoleClient.signedIn(port, "Ada")
})

interface Team {
  readonly id: string
  readonly name: string
  readonly parent: string | null
}

const send = <A = Record<string, unknown>>(method: string, path: string, body?: object) =>
  client.send<A>(method, path, body)

const createTeam = async (settings: object): Promise<Team> => {
  const { body, status } = await send<Team>("POST", "/api/teams", settings)
  assert.strictEqual(status, 201, JSON.stringify(body))
  return body
}

const createKey = async (settings: object) => {
  const { body, status } = await send<{ readonly key: Record<string, unknown> & { readonly id: string } }>(
    "POST",
    "/api/keys",
    settings
  )
  assert.strictEqual(status, 201, JSON.stringify(body))
  return body.key
}

describe("the admin API", () => {
  it("creates, lists, edits and deletes teams", async () => {
    const organisation = await createTeam({ name: "Example Ltd", monthlyBudgetUsd: 1_000 })
    assert.match(organisation.id, /^team_[0-9A-Za-z]{12}$/)
    const team = await createTeam({ name: "search", parent: organisation.id, requestsPerMinute: 60 })
    const { body: listed } = await send<ReadonlyArray<Team>>("GET", "/api/teams")
    assert.includeMembers(listed.map(({ id }) => id), [organisation.id, team.id])

    const { body: edited, status } = await send("PATCH", `/api/teams/${team.id}`, { name: "ads", requestsPerMinute: 5 })
    assert.strictEqual(status, 200)
    assert.deepInclude(edited, { name: "ads", parent: organisation.id, requestsPerMinute: 5 })
    assert.deepInclude((await send("GET", `/api/teams/${team.id}`)).body, {
      name: "ads",
      keys: 0,
      spentThisMonthUsd: 0
    })

    const refused = await send("DELETE", `/api/teams/${organisation.id}`)
    assert.strictEqual(refused.status, 409)
    assert.deepInclude(refused.body, { teams: 1, keys: 0 })
    assert.strictEqual((await send("DELETE", `/api/teams/${team.id}`)).status, 204)
    assert.strictEqual((await send("DELETE", `/api/teams/${organisation.id}`)).status, 204)
    assert.strictEqual((await send("GET", `/api/teams/${organisation.id}`)).status, 404)

    const { body: changes } = await send<ReadonlyArray<Record<string, unknown>>>(
      "GET",
      "/api/key-changes"
    )
    const ofTeam = changes.filter(({ key }) => key === team.id)
    assert.deepStrictEqual(ofTeam.map(({ action }) => action), ["deleted", "edited", "created"])
    assert.deepInclude(ofTeam[1], { by: "Ada", name: "ads", settings: { name: "ads", requestsPerMinute: 5 } })
  })

  it("refuses circles, unknown parents and too many levels, and names the field", async () => {
    const upper = await createTeam({ name: "upper" })
    const lower = await createTeam({ name: "lower", parent: upper.id })
    const mistakes: ReadonlyArray<readonly [method: string, path: string, body: object, says: string]> = [
      ["PATCH", `/api/teams/${upper.id}`, { parent: lower.id }, "must not be the team itself, nor a team below it"],
      ["PATCH", `/api/teams/${upper.id}`, { parent: upper.id }, "must not be the team itself, nor a team below it"],
      ["POST", "/api/teams", { name: "a", parent: "team_unknown" }, "no team has the id team_unknown"]
    ]
    for (const [method, path, body, says] of mistakes) {
      const answer = await send<{ readonly field: string; readonly message: string }>(method, path, body)
      assert.strictEqual(answer.status, 400)
      assert.strictEqual(answer.body.field, "parent")
      assert.include(answer.body.message, says)
    }
    let parent = lower.id
    for (let level = 3; level <= 8; level++) parent = (await createTeam({ name: `level ${level}`, parent })).id
    const deep = await send<{ readonly message: string }>("POST", "/api/teams", { name: "level 9", parent })
    assert.include(deep.body.message, "at most 8 levels of teams: there would be 9")
    assert.strictEqual((await send("PATCH", "/api/teams/team_unknown", { name: "a" })).status, 404)
    // a misspelt limit would make a team without one
    const misspelt = await send<{ readonly detail: string }>("POST", "/api/teams", { name: "a", requestPerMinute: 5 })
    assert.strictEqual(misspelt.status, 400)
    assert.include(misspelt.body.detail, "requestPerMinute: is unknown")
  })

  it("puts keys into teams and moves them; new ones begin with the team's defaults", async () => {
    const keyDefaults = { requestsPerMinute: 7, priorityClass: "batch" }
    const team = await createTeam({ name: "with defaults", keyDefaults })
    const other = await createTeam({ name: "other" })
    const key = await createKey({ name: "defaults", team: team.id })
    assert.deepInclude(key, { team: team.id, ...keyDefaults })
    assert.deepInclude(await createKey({ name: "own", team: team.id, requestsPerMinute: null }), {
      requestsPerMinute: null,
      priorityClass: "batch"
    })
    assert.deepInclude(await createKey({ name: "without" }), { team: null, requestsPerMinute: null })

    const moved = await send("PATCH", `/api/keys/${key.id}`, { team: other.id })
    assert.deepInclude(moved.body, { team: other.id, ...keyDefaults })
    assert.deepInclude((await send("DELETE", `/api/teams/${other.id}`)).body, { teams: 0, keys: 1 })
    for (const [method, path] of [["PATCH", `/api/keys/${key.id}`], ["POST", "/api/keys"]] as const) {
      const { body, status } = await send(method, path, { name: "a", team: "team_unknown" })
      assert.strictEqual(status, 400)
      assert.deepInclude(body, {
        field: "team",
        message: "team: no team has the id team_unknown"
      })
    }
    assert.strictEqual((await send("PATCH", `/api/keys/${key.id}`, { team: null })).status, 200)
    assert.strictEqual((await send("DELETE", `/api/teams/${other.id}`)).status, 204)
  })

  it("agrees with the command line", async () => {
    const team = await createTeam({ name: "by hand", keyDefaults: { weight: 5 } })
    const printed = await gateway().admin("keys", "create", "--name", "by hand", "--team", team.id)
    const id = /key_[0-9A-Za-z]{12}/.exec(printed)?.[0] ?? assert.fail(printed)
    const { body: keys } = await send<ReadonlyArray<Record<string, unknown>>>("GET", "/api/keys")
    assert.deepInclude(keys.find((key) => key["id"] === id), { team: team.id, weight: 5 })
    assert.include(await gateway().admin("keys", "list"), team.id)
    await gateway().admin("keys", "edit", id, "--team", "none")
    assert.strictEqual((await send("DELETE", `/api/teams/${team.id}`)).status, 204)
  })
})
