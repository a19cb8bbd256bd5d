/** Sign-in to the console with OpenID Connect, at a certified provider in a process of its own. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { testAdminToken } from "../../fixture/gateway/Gateway.ts"
import { freePort } from "../../fixture/gateway/ServiceProcess.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { type OpenIdServer, sharedOpenIdServer } from "../../fixture/openid/OpenIdServer.ts"
import { Visitor } from "../../fixture/openid/Visitor.ts"

const accounts = {
  ada: { preferred_username: "ada", groups: ["operators"] },
  alan: { preferred_username: "alan", groups: ["security", "everybody"] },
  grace: {
    email: "grace@example.com",
    email_verified: true,
    preferred_username: "grace",
    groups: ["security", "operators"]
  },
  mallory: { preferred_username: "mallory", groups: ["everybody", "constructor"] },
  nobody: { preferred_username: "nobody" }
}

const roles = "{ operators: admin, security: auditor }"

const gateway = sharedGateway({ workers: 0 })
let consoleUrl = ""
let server: OpenIdServer
const open = sharedOpenIdServer()

const startConsole = async (
  options: Partial<Parameters<typeof open>[0]> = {},
  environment: Readonly<Record<string, string>> = {}
) => {
  const url = `http://127.0.0.1:${await freePort()}`
  const server = await open({ accounts, consoleUrl: url, ...options })
  await gateway().startConsole({ ...server.environment, CONSOLE_OIDC_ROLES: roles, ...environment })
  return { url, server }
}

beforeAll(async () => {
  const started = await startConsole()
  consoleUrl = started.url
  server = started.server
})

const signedIn = async (login: string): Promise<readonly [Visitor, ConsoleClient]> => {
  const visitor = new Visitor()
  await visitor.signIn(consoleUrl, login)
  return [visitor, visitor.console(consoleUrl)]
}

const statusOf = async (client: ConsoleClient): Promise<number> => (await client.fetch("/api/session")).status

describe("sign-in with an OpenID provider", () => {
  it("gives people the role of their groups, and shows the page that they wanted", async () => {
    const visitor = new Visitor()
    assert.strictEqual((await visitor.signIn(consoleUrl, "ada", "/usage")).href, `${consoleUrl}/usage`)
    const client = visitor.console(consoleUrl)
    const { body } = await client.send<object>("GET", "/api/session")
    assert.deepInclude(body, { name: "ada", role: "admin", teams: [] })
    const { body: auditor } = await (await signedIn("alan"))[1].send<object>("GET", "/api/session")
    assert.deepInclude(auditor, { name: "alan", role: "auditor" })
    // the most powerful role, and a verified address
    const { body: both } = await (await signedIn("grace"))[1].send<object>("GET", "/api/session")
    assert.deepInclude(both, { name: "grace@example.com", role: "admin" })
  })

  it("names the person in the audit log, for whom nobody with the token can pass", async () => {
    const [, ada] = await signedIn("ada")
    const { body: { key } } = await ada.send<{ readonly key: { readonly id: string } }>("POST", "/api/keys", {
      name: "a"
    })
    const byToken = new ConsoleClient(Number(new URL(consoleUrl).port))
    await byToken.signIn(testAdminToken, "ada")
    await byToken.send("DELETE", `/api/keys/${key.id}`)
    const { body } = await ada.send<ReadonlyArray<{ readonly key: string; readonly by: string }>>(
      "GET",
      "/api/key-changes"
    )
    assert.deepStrictEqual(body.filter((change) => change.key === key.id).map(({ by }) => by), [
      "ada (admin token)",
      "ada"
    ])
  })

  it("refuses people without a group that has a role, and says so", async () => {
    for (const login of ["mallory", "nobody"]) {
      const visitor = new Visitor()
      assert.strictEqual((await visitor.signIn(consoleUrl, login)).href, `${consoleUrl}/sign-in?problem=no-role`)
      assert.isUndefined(visitor.console(consoleUrl).cookie)
    }
  })

  it("signs out at the provider, too", async () => {
    const [visitor, client] = await signedIn("ada")
    const { body, status } = await client.send<{ readonly providerUrl: string }>("DELETE", "/api/session")
    assert.strictEqual(status, 200)
    assert.isTrue(body.providerUrl.startsWith(`${server.issuer}/session/end`), body.providerUrl)
    assert.strictEqual(await statusOf(client), 401)
    assert.strictEqual((await visitor.confirmSignOut(body.providerUrl)).href, `${consoleUrl}/`)
    // the provider asks for the password again
    const { response } = await visitor.follow(`${consoleUrl}/sign-in/start`)
    assert.include(await response?.text(), "Sign-in")
  })

  it("ends the session when the person signs out at the provider", async () => {
    const [visitor, client] = await signedIn("ada")
    const [, elsewhere] = await signedIn("ada")
    const [, other] = await signedIn("alan")
    assert.strictEqual(await statusOf(client), 200)
    await visitor.confirmSignOut(`${server.issuer}/session/end`)
    await eventually(() => statusOf(client), (status) => status === 401)
    assert.strictEqual(await statusOf(elsewhere), 200)
    assert.strictEqual(await statusOf(other), 200)
  })

  it("follows the provider's keys", async () => {
    const [, before] = await signedIn("ada")
    await server.restart()
    const role = async () => (await signedIn("ada"))[1].cookie
    await eventually(role, (cookie) => cookie !== undefined)
    assert.strictEqual(await statusOf(before), 200)
  })

  it("reads claims that are not in the token at the provider", async () => {
    const { url } = await startConsole({ claimsIn: "userinfo" })
    const visitor = new Visitor()
    await visitor.signIn(url, "grace")
    const { body } = await visitor.console(url).send<object>("GET", "/api/session")
    assert.deepInclude(body, { name: "grace@example.com", role: "admin" })
  })

  it("works without the admin token, if the operator says so", async () => {
    const { url } = await startConsole({}, { CONSOLE_ADMIN_TOKEN_ENABLED: "false", CONSOLE_OIDC_NAME: "Keycloak" })
    const client = new ConsoleClient(Number(new URL(url).port))
    const ways = await client.send("GET", "/api/sign-in")
    assert.deepStrictEqual(ways.body, { adminToken: false, provider: "Keycloak" })
    assert.strictEqual((await client.signIn()).status, 401)
    const headers = { authorization: `Bearer ${testAdminToken}` }
    assert.strictEqual((await client.fetch("/api/keys", { headers })).status, 401)
    const visitor = new Visitor()
    await visitor.signIn(url, "ada")
    assert.strictEqual(await statusOf(visitor.console(url)), 200)
  })

  it("says that the provider does not answer, and signs in when it does again", async () => {
    const { server, url } = await startConsole()
    await server.stop()
    const visitor = new Visitor()
    const refused = await visitor.fetch(`${url}/sign-in/start`)
    assert.strictEqual(refused.headers.get("location"), "/sign-in?problem=unavailable")
    // the token is for such emergencies
    assert.strictEqual((await new ConsoleClient(Number(new URL(url).port)).signIn()).status, 204)
    await server.launch()
    await visitor.signIn(url, "ada")
    assert.strictEqual(await statusOf(visitor.console(url)), 200)
  })

  it("leaves no secret, code or token in the log", async () => {
    const [, client] = await signedIn("ada")
    for (const secret of [server.environment["CONSOLE_OIDC_CLIENT_SECRET"], client.cookie, "eyJ"]) {
      assert.notInclude(gateway().log, secret ?? assert.fail("no secret"))
    }
  })
})
