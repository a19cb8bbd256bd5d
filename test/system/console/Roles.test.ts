/** What each role may do at each operation of the admin API's OpenAPI document. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { DateTime } from "effect"
import { chat } from "../../fixture/client/ChatClient.ts"
import { serviceHeaders, traceOf, tracesPath } from "../../fixture/telemetry/OtlpTraces.ts"
import type { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { freePort } from "../../fixture/gateway/ServiceProcess.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { sharedOpenIdServer } from "../../fixture/openid/OpenIdServer.ts"
import { Visitor } from "../../fixture/openid/Visitor.ts"

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
}

const gateway = sharedGateway()
const open = sharedOpenIdServer()
const otlpToken = "a-token-for-traces-in-this-test"
let url = ""

beforeAll(async () => {
  url = `http://127.0.0.1:${await freePort()}`
  const accounts = {
    ada: { preferred_username: "ada", groups: ["operators"] },
    alan: { preferred_username: "alan", groups: ["security"] },
    mel: { preferred_username: "mel", groups: ["research"] }
  }
  const server = await open({ accounts, consoleUrl: url })
  await gateway().startConsole({
    ...server.environment,
    CONSOLE_OTLP_TOKEN: otlpToken,
    CONSOLE_OIDC_ROLES: "{ operators: admin, security: auditor, research: { member: Research } }"
  })
})

const signedIn = async (login: string): Promise<ConsoleClient> => {
  const visitor = new Visitor()
  await visitor.signIn(url, login)
  return visitor.console(url)
}

/** Of two days, because the day may change while the tests run. */
const today = DateTime.nowUnsafe()
const [from, to] = [today, DateTime.add(today, { days: 1 })].map(DateTime.formatIsoDateUtc)
const usage = `from=${from}&to=${to}&by=key&by=team`

/**
 * A request of each operation, and its status for an administrator, an auditor and a member, if what it names does not exist or, for
 * the member, is of another team.
 */
const expected: Readonly<
  Record<
    string,
    readonly [
      admin: number,
      auditor: number,
      member: number,
      more?: { readonly query?: string; readonly body?: object }
    ]
  >
> = {
  "GET /api/sign-in": [200, 200, 200],
  "GET /api/session": [200, 200, 200],
  // the wrong token, from people whose role does not matter
  "POST /api/session": [401, 401, 401, { body: { token: "not the admin token at all" } }],
  "GET /api/keys": [200, 200, 200],
  "POST /api/keys": [201, 403, 400, { body: { name: "a" } }],
  "PATCH /api/keys/{id}": [404, 403, 404, { body: { disabled: true } }],
  "DELETE /api/keys/{id}": [404, 403, 404],
  "GET /api/key-changes": [200, 200, 200],
  "GET /api/principals": [200, 200, 403],
  "GET /api/keys/{id}/webhook": [404, 404, 404],
  "PUT /api/keys/{id}/webhook": [404, 403, 404, { body: { url: "https://hooks.example/" } }],
  "DELETE /api/keys/{id}/webhook": [404, 403, 404],
  "POST /api/keys/{id}/webhook/rotate": [404, 403, 404],
  "GET /api/keys/{id}/webhook/deliveries": [404, 404, 404],
  "POST /api/keys/{id}/webhook/deliveries/{delivery}/resend": [404, 403, 404],
  "GET /api/teams": [200, 200, 200],
  "POST /api/teams": [201, 403, 403, { body: { name: "a" } }],
  "GET /api/teams/{team}": [404, 404, 404],
  "PATCH /api/teams/{team}": [404, 403, 403, { body: { name: "b" } }],
  "DELETE /api/teams/{team}": [404, 403, 403],
  "GET /api/teams/{team}/webhook": [404, 404, 403],
  "PUT /api/teams/{team}/webhook": [404, 403, 403, { body: { url: "https://hooks.example/" } }],
  "DELETE /api/teams/{team}/webhook": [404, 403, 403],
  "POST /api/teams/{team}/webhook/rotate": [404, 403, 403],
  "GET /api/teams/{team}/webhook/deliveries": [404, 404, 403],
  "POST /api/teams/{team}/webhook/deliveries/{delivery}/resend": [404, 403, 403],
  "GET /api/tasks": [200, 200, 200],
  "GET /api/tasks/{id}": [404, 404, 404],
  "POST /api/tasks/{id}/cancel": [404, 403, 404],
  "DELETE /api/tasks/{id}": [404, 403, 404],
  "GET /api/usage": [200, 200, 200, { query: usage }],
  "GET /api/usage.csv": [200, 200, 200, { query: usage }],
  "GET /api/requests": [200, 200, 200],
  "GET /api/traces/{id}": [404, 404, 404],
  "GET /api/models": [200, 200, 403],
  "GET /api/fleet": [200, 200, 403],
  // last, because it ends the session
  "DELETE /api/session": [200, 200, 200]
}

interface Ids {
  readonly team: string
  readonly key: string
  readonly task: string
  readonly trace: string
}

const unknown: Ids = {
  key: "key_000000000000",
  team: "team_000000000000",
  task: `task_${"0".repeat(32)}`,
  trace: "0".repeat(32)
}

/** What a member may do with a key of a team and its tasks and traces, in this order. */
const ofOwnTeam: ReadonlyArray<readonly [operation: string, status: number, body?: object]> = [
  ["POST /api/keys", 201, { name: "a" }],
  ["PATCH /api/keys/{id}", 200, { requestsPerMinute: 5 }],
  ["GET /api/teams/{team}", 200],
  ["GET /api/keys/{id}/webhook", 200],
  ["PUT /api/keys/{id}/webhook", 200, { url: "https://hooks.example/new" }],
  ["POST /api/keys/{id}/webhook/rotate", 200],
  ["GET /api/keys/{id}/webhook/deliveries", 200],
  ["POST /api/keys/{id}/webhook/deliveries/{delivery}/resend", 404],
  ["DELETE /api/keys/{id}/webhook", 204],
  ["GET /api/traces/{id}", 200],
  ["GET /api/tasks/{id}", 200],
  ["POST /api/tasks/{id}/cancel", 200],
  ["DELETE /api/tasks/{id}", 204],
  ["GET /api/tasks/{id}", 404],
  ["DELETE /api/keys/{id}", 204]
]

/** A team, and a key of it with a webhook, a task, its usage and a trace, all with the team's name. */
const plant = async (admin: ConsoleClient, name: string, parent: string | null): Promise<Ids> => {
  const { body: { id: team } } = await admin.send<{ readonly id: string }>("POST", "/api/teams", { name, parent })
  const { body } = await admin.send<{ readonly key: { readonly id: string }; readonly secret: string }>(
    "POST",
    "/api/keys",
    { name: `key of ${name}`, team }
  )
  const key = body.key.id
  await admin.send("PUT", `/api/keys/${key}/webhook`, { url: `https://hooks.example/${name.replaceAll(" ", "-")}` })
  const accepted = await eventually(
    () =>
      gateway().request(chat("free-chat"), {
        headers: { authorization: `Bearer ${body.secret}`, prefer: "respond-async" }
      }),
    ({ status }) => status === 202
  )
  const trace = `trace-of-${name.replaceAll(" ", "-")}`
  const sent = await fetch(`${url}${tracesPath}`, {
    method: "POST",
    headers: serviceHeaders(otlpToken),
    body: JSON.stringify(traceOf(trace, { "gateway.tenant": key }))
  })
  assert.strictEqual(sent.status, 200)
  return { team, key, trace, task: (await accepted.json() as { readonly id: string }).id }
}

const idsOf = (all: ReadonlyArray<{ readonly id: string }>) => all.map(({ id }) => id)
const tasksOf = async (client: ConsoleClient) =>
  idsOf((await client.send<{ readonly tasks: ReadonlyArray<{ readonly id: string }> }>("GET", "/api/tasks")).body.tasks)
/** Waits until the list contains these tasks. The console reads the ids of new tasks only every so often. */
const untilListed = (client: ConsoleClient, ...planted: ReadonlyArray<Ids>) =>
  eventually(() => tasksOf(client), (ids) => planted.every(({ task }) => ids.includes(task)))
const changesOf = async (client: ConsoleClient) =>
  (await client.send<ReadonlyArray<{ readonly key: string; readonly action: string }>>("GET", "/api/key-changes")).body
const keysOf = async (client: ConsoleClient) =>
  (await client.send<ReadonlyArray<{ readonly id: string }>>("GET", "/api/keys")).body

/** The id that a path needs. */
const idIn = (path: string, { key, task, team, trace }: Ids): string => {
  if (path.includes("{team}")) return team
  if (path.startsWith("/api/keys/")) return key
  return path.startsWith("/api/traces/") ? trace : task
}

const perform = async (
  client: ConsoleClient,
  operation: string,
  ids: Ids,
  { body, query }: { readonly query?: string; readonly body?: object } = {}
) => {
  const [method = "", path = ""] = operation.split(" ")
  const target = path.replaceAll("{delivery}", "msg_0").replaceAll(/\{\w+\}/g, () => idIn(path, ids))
  const response = await client.fetch(query === undefined ? target : `${target}?${query}`, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) })
  })
  return { status: response.status, text: await response.text() }
}

const roles = [["admin", "ada"], ["auditor", "alan"], ["member", "mel"]] as const

describe("the admin API", () => {
  it("states in this file what each role may do at each operation", async () => {
    const { body: { paths } } = await (await signedIn("ada")).send<Document>("GET", "/api/openapi.json")
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) =>
        `${method.toUpperCase()} ${path.replace("/api/teams/{id}", "/api/teams/{team}")}`
      )
    )
    assert.sameMembers(operations, Object.keys(expected))
  })

  it.each(roles)("answers as the role %s may expect", async (role, login) => {
    const client = await signedIn(login)
    const session = await client.send<object>("GET", "/api/session")
    assert.deepInclude(session.body, { name: login, role })
    const at = roles.findIndex(([name]) => name === role)
    for (const [operation, statuses] of Object.entries(expected)) {
      const { status, text } = await perform(client, operation, unknown, statuses[3])
      assert.strictEqual(status, statuses[at], `${operation}: ${text}`)
      if (status === 403) assert.deepInclude(JSON.parse(text), { _tag: "NotAllowed" })
    }
  })

  it("shows members their teams and the teams below, and nothing of others", async () => {
    const admin = await signedIn("ada")
    const member = await signedIn("mel")
    const organisation = await plant(admin, "Organisation Zebra", null)
    const own = await plant(admin, "Research", organisation.team)
    const below = await plant(admin, "Laboratory", own.team)
    const other = await plant(admin, "Other Quagga", organisation.team)
    await eventually(
      async () => (await admin.fetch(`/api/usage?${usage}`)).text(),
      (text) => [organisation, own, below, other].every(({ key }) => text.includes(key))
    )

    const before = await keysOf(admin)
    const tasksBefore = await untilListed(admin, own, below, other, organisation)
    for (const foreign of [other, organisation]) {
      for (const [operation, [, , status, more = {}]] of Object.entries(expected)) {
        if (operation === "DELETE /api/session") continue
        const sent = operation === "POST /api/keys" ? { body: { name: "a", team: foreign.team } } : more
        const { status: answered, text } = await perform(member, operation, foreign, sent)
        assert.strictEqual(answered, status, `${operation}: ${text}`)
        // an error repeats the id that it does not know
        const said = answered === 404
          ? text.replace(`"id":"${idIn(operation.split(" ")[1] ?? "", foreign)}"`, "")
          : text
        for (const secret of [...Object.values(other), ...Object.values(organisation), "Zebra", "Quagga"]) {
          assert.notInclude(said, secret, operation)
        }
      }
    }
    assert.deepStrictEqual(await keysOf(admin), before)
    assert.deepStrictEqual(await tasksOf(admin), tasksBefore)

    assert.sameMembers(await untilListed(member, own, below), [own.task, below.task])
    assert.sameMembers(
      (await changesOf(member)).map(({ action, key }) => `${action} ${key}`),
      [own, below].flatMap(({ key }) => [`created ${key}`, `edited ${key}`])
    )
    assert.strictEqual((await admin.send("GET", `/api/traces/${other.trace}`)).status, 200)
    assert.sameMembers(idsOf(await keysOf(member)), [own.key, below.key])
    const { body: teams } = await member.send<ReadonlyArray<{ id: string; parent: string | null }>>("GET", "/api/teams")
    assert.sameDeepMembers(teams.map(({ id, parent }) => ({ id, parent })), [
      { id: own.team, parent: null },
      { id: below.team, parent: own.team }
    ])
    const { body: requests } = await member.send<ReadonlyArray<{ readonly key: string }>>("GET", "/api/requests")
    assert.sameMembers(requests.map(({ key }) => key), [own.key, below.key])
    const counted = await (await member.fetch(`/api/usage?${usage}`)).text()
    assert.include(counted, own.key)
    assert.include(counted, below.key)

    for (const [method, path] of [["PATCH", `/api/keys/${own.key}`], ["POST", "/api/keys"]] as const) {
      for (const team of [other.team, organisation.team, null, "team_unknown"]) {
        const { body, status } = await member.send(method, path, { name: "moved", team })
        assert.strictEqual(status, 400)
        assert.deepInclude(body, { field: "team", message: "team: must be the id of one of your teams" })
      }
      for (const precedence of [{ weight: 2 }, { priorityClass: "interactive" }, { batchConcurrency: 33 }]) {
        const { body, status } = await member.send(method, path, { name: "first", team: own.team, ...precedence })
        assert.strictEqual(status, 400)
        assert.deepInclude(body, { field: Object.keys(precedence)[0] })
      }
    }
    const disable = (disabled: boolean) => member.send("PATCH", `/api/keys/${own.key}`, { disabled })
    assert.strictEqual((await disable(true)).status, 200)
    const { body: refusal, status: refused } = await disable(false)
    assert.strictEqual(refused, 400)
    assert.deepInclude(refusal, { field: "disabled" })
    assert.strictEqual((await member.send("PATCH", `/api/keys/${own.key}`, { team: below.team })).status, 200)

    for (const [operation, status, body] of ofOwnTeam) {
      const sent = operation === "POST /api/keys" ? { body: { ...body, team: own.team } } : body && { body }
      const { status: answered, text } = await perform(member, operation, { ...own, key: below.key }, sent)
      assert.strictEqual(answered, status, `${operation}: ${text}`)
    }

    // the audit log shows what happened to keys in a member's teams, also after they were revoked, but nothing from elsewhere
    const { body: { key: moved } } = await admin.send<{ readonly key: { readonly id: string } }>("POST", "/api/keys", {
      name: "moved",
      team: other.team
    })
    await admin.send("PATCH", `/api/keys/${moved.id}`, { team: own.team })
    const changes = await changesOf(member)
    const actionsOn = (id: string) => changes.filter(({ key }) => key === id).map(({ action }) => action)
    assert.deepStrictEqual(actionsOn(moved.id), ["edited"])
    assert.deepStrictEqual(actionsOn(below.key)[0], "revoked")
    assert.include(actionsOn(own.key), "deleted")

    // a team with another name is not the team of the configuration
    await admin.send("PATCH", `/api/teams/${own.team}`, { name: "Renamed" })
    await eventually(() => keysOf(member), (keys) => keys.length === 0)
    assert.strictEqual((await member.send("PATCH", `/api/keys/${own.key}`, { name: "a" })).status, 404)
  })

  it("rejects a write before it reads what is to be written", async () => {
    const response = await (await signedIn("alan")).fetch("/api/keys", { method: "POST", body: "{" })
    assert.strictEqual(response.status, 403)
  })
})
