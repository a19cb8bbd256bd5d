/** Attacks on the console's sign-in with OpenID Connect: forged, foreign and replayed answers of a provider. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Scope } from "effect"
import { generateKeyPair } from "jose"
import { afterAll } from "vitest"
import { cookieName } from "../../../services/console/api/Admin.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { freePort } from "../../fixture/gateway/ServiceProcess.ts"
import { type Answer, makeForgedProvider } from "../../fixture/openid/ForgedProvider.ts"
import { Visitor } from "../../fixture/openid/Visitor.ts"

const clientId = "console"
const clientSecret = "the secret of the console as a client"

const gateway = sharedGateway({ workers: 0 })
const scope = Scope.makeUnsafe()
let provider: Effect.Success<ReturnType<typeof makeForgedProvider>>
let url = ""

beforeAll(async () => {
  provider = await Effect.runPromise(Scope.provide(makeForgedProvider(clientId), scope))
  const port = String(await freePort())
  url = `http://127.0.0.1:${port}`
  await gateway().startConsole({
    PORT: port,
    CONSOLE_PUBLIC_URL: url,
    CONSOLE_OIDC_ISSUER: provider.issuer,
    CONSOLE_OIDC_CLIENT_ID: clientId,
    CONSOLE_OIDC_CLIENT_SECRET: clientSecret,
    CONSOLE_OIDC_ROLES: "{ operators: admin }"
  })
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

/** Starts a sign-in, and returns the URL at which the provider would get the browser. */
const begin = async (visitor: Visitor, to = "/"): Promise<URL> => {
  const response = await visitor.fetch(`${url}/sign-in/start?to=${encodeURIComponent(to)}`)
  return new URL(response.headers.get("location") ?? assert.fail("no redirect"))
}

const callbackOf = (parameters: Readonly<Record<string, string>>): string =>
  `${url}/sign-in/callback?${new URLSearchParams(parameters)}`

/** Where the console sends the browser after a callback. */
const arrive = async (visitor: Visitor, callback: string): Promise<string> => {
  const response = await visitor.fetch(callback)
  assert.strictEqual(response.status, 303)
  return response.headers.get("location") ?? ""
}

const isSignedIn = (visitor: Visitor): boolean => visitor.cookiesOf(url).has(cookieName)

/** The whole sign-in with an answer of the provider. */
const signIn = async (answer: Answer = {}, parameters: Readonly<Record<string, string>> = {}) => {
  const visitor = new Visitor()
  const request = await begin(visitor)
  const state = request.searchParams.get("state") ?? ""
  const callback = callbackOf({ code: provider.authorize(request, answer), state, ...parameters })
  return { visitor, callback, location: await arrive(visitor, callback) }
}

const problem = (name: string): string => `/sign-in?problem=${name}`

describe("the answer of a provider", () => {
  it("is accepted if it is right", async () => {
    const { location, visitor } = await signIn()
    assert.strictEqual(location, "/")
    assert.isTrue(isSignedIn(visitor))
  })

  it("asks for a code with PKCE, state and nonce, which no two sign-ins share", async () => {
    const requests = [await begin(new Visitor()), await begin(new Visitor())]
    for (const { searchParams } of requests) {
      assert.deepInclude(Object.fromEntries(searchParams), {
        response_type: "code",
        client_id: clientId,
        redirect_uri: `${url}/sign-in/callback`,
        code_challenge_method: "S256"
      })
    }
    for (const name of ["state", "nonce", "code_challenge"]) {
      const [first, second] = requests.map(({ searchParams }) => searchParams.get(name) ?? "")
      assert.isAtLeast(first?.length ?? 0, 43, name)
      assert.notStrictEqual(first, second, name)
    }
  })

  it("needs the cookie of its sign-in, which other sites cannot read, and which does not last", async () => {
    const visitor = new Visitor()
    const response = await visitor.fetch(`${url}/sign-in/start`)
    const cookie = response.headers.get("set-cookie") ?? ""
    for (const attribute of ["HttpOnly", "SameSite=Lax", "Path=/sign-in", "Max-Age=600"]) {
      assert.include(cookie, attribute)
    }
    const request = new URL(response.headers.get("location") ?? "")
    const state = request.searchParams.get("state") ?? ""
    // neither nonce nor verifier is in the browser
    assert.notInclude(cookie, request.searchParams.get("nonce") ?? "")
    const callback = callbackOf({ code: provider.authorize(request, {}), state })
    const victim = new Visitor()
    assert.strictEqual(await arrive(victim, callback), problem("expired"))
    // nor does the cookie of another sign-in do
    await begin(victim)
    assert.strictEqual(await arrive(victim, callback), problem("refused"))
    assert.isFalse(isSignedIn(victim))
    assert.strictEqual(await arrive(visitor, callback), "/")
  })

  const foreign: ReadonlyArray<readonly [what: string, answer: Answer, parameters: Readonly<Record<string, string>>]> =
    [
      ["another state", {}, { state: "A".repeat(43) }],
      ["an empty state", {}, { state: "" }],
      ["another issuer in the URL", {}, { iss: "https://evil.example" }],
      ["another code", {}, { code: "code-0" }],
      ["another nonce", { claims: { nonce: "another" } }, {}],
      ["no nonce", { claims: { nonce: undefined } }, {}],
      ["another issuer", { claims: { iss: "https://evil.example" } }, {}],
      ["another audience", { claims: { aud: "other" } }, {}],
      ["several audiences, for another party", { claims: { aud: [clientId, "other"], azp: "other" } }, {}],
      ["an expired token", { claims: { iat: 1_000, exp: 2_000 } }, {}],
      ["a token without expiry", { claims: { exp: undefined } }, {}],
      ["a token of nobody", { claims: { sub: undefined } }, {}],
      ["no token", { hasIdToken: false }, {}],
      ["a token without signature", { alg: "none" }, {}],
      ["a token signed with the client's secret", { alg: "HS256", key: new TextEncoder().encode(clientSecret) }, {}]
    ]
  it.each(foreign)("is rejected with %s", async (_, answer, parameters) => {
    const { location, visitor } = await signIn(answer, parameters)
    assert.strictEqual(location, problem("refused"))
    assert.isFalse(isSignedIn(visitor))
  })

  it("is rejected with a signature by another key", async () => {
    const { privateKey } = await generateKeyPair("RS256")
    const { location, visitor } = await signIn({ key: privateKey })
    assert.strictEqual(location, problem("refused"))
    assert.isFalse(isSignedIn(visitor))
  })

  it("counts once", async () => {
    const visitor = new Visitor()
    const request = await begin(visitor)
    const cookie = new Map(visitor.cookiesOf(url))
    const state = request.searchParams.get("state") ?? ""
    const callback = callbackOf({ code: provider.authorize(request, {}), state })
    assert.strictEqual(await arrive(visitor, callback), "/")
    // the cookie is gone
    assert.strictEqual(await arrive(visitor, callback), problem("expired"))
    const thief = new Visitor()
    for (const [name, value] of cookie) thief.cookiesOf(url).set(name, value)
    assert.strictEqual(await arrive(thief, callback), problem("refused"))
    // not even if the provider gives another code for the same request
    for (const [name, value] of cookie) thief.cookiesOf(url).set(name, value)
    const again = callbackOf({ code: provider.authorize(request, {}), state })
    assert.strictEqual(await arrive(thief, again), problem("expired"))
    assert.isFalse(isSignedIn(thief))
  })

  it("may be that the person does not want to", async () => {
    const visitor = new Visitor()
    const state = (await begin(visitor)).searchParams.get("state") ?? ""
    const callback = callbackOf({ error: "access_denied", error_description: "<script>", state })
    assert.strictEqual(await arrive(visitor, callback), problem("cancelled"))
  })

  it("leads to no other site", async () => {
    const elsewhere = [
      "https://evil.example",
      "//evil.example",
      "/\\evil.example",
      "/..//evil.example",
      "/%2f/evil",
      "javascript:1",
      "/a\r\nb: c"
    ]
    for (const to of elsewhere) {
      const visitor = new Visitor()
      const request = await begin(visitor, to)
      const state = request.searchParams.get("state") ?? ""
      assert.strictEqual(await arrive(visitor, callbackOf({ code: provider.authorize(request, {}), state })), "/", to)
    }
  })
})

describe("a logout token", () => {
  it("ends the person's sessions only if it is one, from the provider, for the console, and new", async () => {
    const { visitor } = await signIn()
    const client = visitor.console(url)
    const status = async () => (await client.fetch("/api/session")).status
    const { privateKey } = await generateKeyPair("RS256")
    const events = { "http://schemas.openid.net/event/backchannel-logout": {} }
    const forged: ReadonlyArray<readonly [what: string, Answer]> = [
      ["another audience", { claims: { aud: "other" } }],
      ["another issuer", { claims: { iss: "https://evil.example" } }],
      ["expired", { claims: { iat: 1_000, exp: 2_000 } }],
      ["without expiry", { claims: { exp: undefined } }],
      ["old", { claims: { iat: Math.floor(DateTime.nowUnsafe().epochMilliseconds / 1_000) - 3_600 } }],
      ["without id", { claims: { jti: undefined } }],
      ["about nobody", { claims: { sub: undefined } }],
      ["another event", { claims: { events: { other: {} } } }],
      ["an ID token", { claims: { events: undefined } }],
      ["with a nonce", { claims: { nonce: "a", events } }],
      ["another key", { key: privateKey }],
      ["no signature", { alg: "none" }]
    ]
    for (const [what, answer] of forged) assert.strictEqual(await provider.logOut(url, answer), 400, what)
    for (const text of ["", "a.b.c", "x".repeat(10_000)]) {
      const body = new URLSearchParams({ logout_token: text })
      assert.strictEqual((await fetch(`${url}/sign-in/signed-out`, { method: "POST", body })).status, 400)
    }
    assert.strictEqual(await provider.logOut(url, { claims: { sub: "grace" } }), 200)
    assert.strictEqual(await status(), 200)
    assert.strictEqual(await provider.logOut(url), 200)
    assert.strictEqual(await status(), 401)
  })
})
