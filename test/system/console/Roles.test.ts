/** What each role may do at each operation of the admin API's OpenAPI document. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import type { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { freePort } from "../../fixture/gateway/ServiceProcess.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { sharedOpenIdServer } from "../../fixture/openid/OpenIdServer.ts"
import { Visitor } from "../../fixture/openid/Visitor.ts"

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
}

const gateway = sharedGateway({ workers: 0 })
const open = sharedOpenIdServer()
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
    CONSOLE_OIDC_ROLES: "{ operators: admin, security: auditor, research: { member: Research } }"
  })
})

const signedIn = async (login: string): Promise<ConsoleClient> => {
  const visitor = new Visitor()
  await visitor.signIn(url, login)
  return visitor.console(url)
}

const usage = "from=2026-01-01&to=2026-01-02&by=key"

/** A request of each operation, and its status for an administrator, an auditor and a member. */
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
  "GET /api/keys": [200, 200, 403],
  "POST /api/keys": [201, 403, 403, { body: { name: "a" } }],
  "PATCH /api/keys/{id}": [404, 403, 403, { body: { disabled: true } }],
  "DELETE /api/keys/{id}": [404, 403, 403],
  "GET /api/key-changes": [200, 200, 403],
  "GET /api/principals": [200, 200, 403],
  "GET /api/keys/{id}/webhook": [404, 404, 403],
  "PUT /api/keys/{id}/webhook": [404, 403, 403, { body: { url: "https://hooks.example/" } }],
  "DELETE /api/keys/{id}/webhook": [404, 403, 403],
  "POST /api/keys/{id}/webhook/rotate": [404, 403, 403],
  "GET /api/keys/{id}/webhook/deliveries": [404, 404, 403],
  "POST /api/keys/{id}/webhook/deliveries/{delivery}/resend": [404, 403, 403],
  "GET /api/teams": [200, 200, 403],
  "POST /api/teams": [201, 403, 403, { body: { name: "a" } }],
  "GET /api/teams/{team}": [404, 404, 403],
  "PATCH /api/teams/{team}": [404, 403, 403, { body: { name: "b" } }],
  "DELETE /api/teams/{team}": [404, 403, 403],
  "GET /api/teams/{team}/webhook": [404, 404, 403],
  "PUT /api/teams/{team}/webhook": [404, 403, 403, { body: { url: "https://hooks.example/" } }],
  "DELETE /api/teams/{team}/webhook": [404, 403, 403],
  "GET /api/tasks": [200, 200, 403],
  "GET /api/tasks/{id}": [404, 404, 403],
  "POST /api/tasks/{id}/cancel": [404, 403, 403],
  "DELETE /api/tasks/{id}": [404, 403, 403],
  "GET /api/usage": [200, 200, 403, { query: usage }],
  "GET /api/usage.csv": [200, 200, 403, { query: usage }],
  "GET /api/requests": [200, 200, 403],
  "GET /api/traces/{id}": [404, 404, 403],
  "GET /api/models": [200, 200, 403],
  "GET /api/fleet": [200, 200, 403],
  // last, because it ends the session
  "DELETE /api/session": [200, 200, 200]
}

const ids: Readonly<Record<string, string>> = {
  "{id}": "key_000000000000",
  "{team}": "team_000000000000",
  "{delivery}": "msg_0"
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
      const [method = "", path = ""] = operation.split(" ")
      const { body, query } = statuses[3] ?? {}
      const target = path.replaceAll(/\{\w+\}/g, (name) => ids[name] ?? assert.fail(name))
      const response = await client.fetch(query === undefined ? target : `${target}?${query}`, {
        method,
        ...(body === undefined ? {} : { body: JSON.stringify(body) })
      })
      const text = await response.text()
      assert.strictEqual(response.status, statuses[at], `${operation}: ${text}`)
      if (response.status === 403) assert.deepInclude(JSON.parse(text), { _tag: "NotAllowed" })
    }
  })

  it("rejects a write before it reads what is to be written", async () => {
    const response = await (await signedIn("alan")).fetch("/api/keys", { method: "POST", body: "{" })
    assert.strictEqual(response.status, 403)
  })
})
