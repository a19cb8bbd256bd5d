/** Attacks on the console over plain HTTP: each is rejected and reveals nothing. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { createHmac, hash, hkdfSync } from "node:crypto"
import { cookieName } from "../../../services/console/api/Admin.ts"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { testAdminToken, testKey, testSecret } from "../../fixture/gateway/Gateway.ts"
import { type RawAnswer, sendRaw } from "../../fixture/client/RawHttp.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
}

const gateway = sharedGateway({ workers: 0 })
let port = 0
let client: ConsoleClient

beforeAll(async () => {
  port = (await gateway().startConsole()).port
  client = await ConsoleClient.signedIn(port)
})

/** Every endpoint except those for signing in, with some value for each id. */
const endpoints = async (): Promise<ReadonlyArray<readonly [method: string, path: string]>> => {
  const { body } = await client.send<Document>("GET", "/api/openapi.json")
  const all = Object.entries(body.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => [method.toUpperCase(), path.replace("{id}", "key_0")] as const)
  )
  assert.isAbove(all.length, 10)
  return all.filter(([method, path]) => path !== "/api/sign-in" && !(method === "POST" && path === "/api/session"))
}

const stranger = (cookie?: string) => {
  const stranger = new ConsoleClient(port)
  stranger.cookie = cookie
  return stranger
}

/** Sends one raw request with these header lines, to the console by default. */
const raw = async (method: string, path: string, lines: ReadonlyArray<string> = [], to = port): Promise<RawAnswer> => {
  const head = [`${method} ${path} HTTP/1.1`, `host: 127.0.0.1:${to}`, "connection: close", ...lines]
  const [answer] = await sendRaw(to, [`${head.join("\r\n")}\r\n\r\n`])
  return answer ?? assert.fail(`no answer to ${method} ${path}`)
}

describe("the admin API", () => {
  it("rejects requests without a session, at every endpoint", async () => {
    for (const [method, path] of await endpoints()) {
      const { body, status } = await stranger().send<object>(method, path, method === "GET" ? undefined : {})
      assert.strictEqual(status, 401, `${method} ${path}`)
      assert.deepInclude(body, { _tag: "NotSignedIn" })
    }
  })

  it("rejects a cookie that is forged, truncated, expired, or signed with another key", async () => {
    const cookie = client.cookie ?? assert.fail("not signed in")
    const [secret = "", expires = ""] = cookie.split(".")
    /** Signs as the console does, with the gateway's secret and the admin token. */
    const signed = (text: string, gatewaySecret = testSecret, token = testAdminToken) => {
      const key = new Uint8Array(hkdfSync("sha256", gatewaySecret, "model-gateway", "console-session", 32))
      const signature = createHmac("sha256", key).update(hash("sha256", token, "buffer")).update(text).digest(
        "base64url"
      )
      return `${text}.${signature}`
    }
    // proves that this is the console's way to sign
    assert.strictEqual(signed(`${secret}.${expires}`), cookie)
    const forgeries = [
      cookie.slice(0, -1),
      cookie.toLowerCase(),
      `${cookie}=`,
      `${secret}.${expires}.`,
      signed(`${secret}.1`),
      signed(`${secret}.${Number(expires) - 13 * 3_600}`),
      signed(`${"A".repeat(32)}.${expires}`),
      signed(`${secret}.${expires}`, "another secret of more than thirty-two characters"),
      signed(`${secret}.${expires}`, testSecret, "another token of the tests"),
      testAdminToken,
      testKey
    ]
    for (const forged of forgeries) {
      assert.strictEqual((await stranger(forged).send("GET", "/api/keys")).status, 401, forged)
    }
    assert.strictEqual((await stranger(cookie).send("GET", "/api/keys")).status, 200)
  })

  it("rejects the replayed cookie of an ended session", async () => {
    const other = await ConsoleClient.signedIn(port)
    const cookie = other.cookie
    assert.strictEqual((await other.send("GET", "/api/keys")).status, 200)
    assert.strictEqual((await other.send("DELETE", "/api/session")).status, 204)
    assert.strictEqual((await stranger(cookie).send("GET", "/api/keys")).status, 401)
    // other sessions remain
    assert.strictEqual((await client.send("GET", "/api/keys")).status, 200)
  })

  it("rejects API keys, as the ingress rejects the admin token", async () => {
    const asBearer = await stranger().fetch("/api/keys", { headers: { authorization: `Bearer ${testKey}` } })
    assert.strictEqual(asBearer.status, 401)
    const atIngress = await fetch(`${gateway().url}/v1/models`, {
      headers: { authorization: `Bearer ${testAdminToken}`, cookie: `${cookieName}=${client.cookie}` }
    })
    assert.strictEqual(atIngress.status, 401)
    const asToken = await stranger().fetch("/api/keys", { headers: { authorization: `Bearer ${testAdminToken}` } })
    assert.strictEqual(asToken.status, 200)
  })

  it("does not reveal whether a key exists", async () => {
    const { body } = await client.send<{ readonly key: { readonly id: string } }>("POST", "/api/keys", {
      name: "secret"
    })
    const answers = await Promise.all([body.key.id, "key_000000000000"].map(async (id) => {
      const response = await stranger().fetch(`/api/keys/${id}`, { method: "DELETE" })
      return [response.status, await response.text()]
    }))
    assert.deepStrictEqual(answers[0], answers[1])
    // nor does the ingress distinguish a revoked key from one that never existed
    const { body: revoked } = await client.send<{ readonly key: { readonly id: string }; readonly secret: string }>(
      "POST",
      "/api/keys",
      { name: "revoked", disabled: false }
    )
    const askWith = async (key: string) => {
      const response = await fetch(`${gateway().url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
      return [response.status, await response.text()]
    }
    const untilAnswered = (status: number) => eventually(() => askWith(revoked.secret), ([is]) => is === status)
    await untilAnswered(200)
    await client.send("DELETE", `/api/keys/${revoked.key.id}`)
    await untilAnswered(401)
    const atIngress = await Promise.all([revoked.secret, `sk-gw-${"0".repeat(32)}`].map(askWith))
    assert.deepStrictEqual(atIngress[0], atIngress[1])
  })

  it("rejects requests that another site makes a browser send", async () => {
    const cookie = `cookie: ${cookieName}=${client.cookie}`
    const body = ["content-type: application/json", "content-length: 2"]
    const ours = [cookie, "x-gateway-console: 1"]
    const refused: ReadonlyArray<readonly [what: string, method: string, lines: ReadonlyArray<string>]> = [
      ["no header of a page", "DELETE", [cookie]],
      ["no header, our own origin", "DELETE", [cookie, `origin: http://127.0.0.1:${port}`]],
      ["another origin", "DELETE", [...ours, "origin: https://evil.example"]],
      ["another port", "DELETE", [...ours, "origin: http://127.0.0.1:8080"]],
      ["no origin at all, as from a sandbox", "DELETE", [...ours, "origin: null"]],
      ["cross-site", "DELETE", [...ours, "sec-fetch-site: cross-site"]],
      ["same-site", "DELETE", [...ours, "sec-fetch-site: same-site"]],
      ["a read from another site", "GET", [...ours, "sec-fetch-site: same-site"]]
    ]
    for (const [what, method, lines] of refused) {
      const answer = await raw(method, "/api/keys/key_0", lines)
      assert.strictEqual(answer.status, 403, what)
      assert.notProperty(answer.headers, "access-control-allow-origin")
    }
    assert.strictEqual((await raw("DELETE", "/api/keys/key_0", ours)).status, 404)
    // the router finds the admin API at these paths, too
    for (const path of ["/API/keys", "/%61pi/keys", "//api/keys", "/api//keys"]) {
      assert.strictEqual((await raw("GET", path, [...ours, "sec-fetch-site: same-site"])).status, 403, path)
    }
    for (const path of ["/", "/keys", "/sign-in"]) {
      assert.strictEqual((await raw("GET", path, [cookie, "sec-fetch-site: cross-site"])).status, 200, path)
    }
    const preflight = await raw("OPTIONS", "/api/keys", [
      "origin: https://evil.example",
      "access-control-request-method: POST",
      "access-control-request-headers: x-gateway-console",
      ...body.slice(1).map(() => "content-length: 0")
    ])
    assert.isAtLeast(preflight.status, 400)
    assert.notProperty(preflight.headers, "access-control-allow-origin")
  })

  it("rejects a host name other than its own, as in DNS rebinding", async () => {
    const head = (host: string) => `GET /api/keys HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`
    for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1.evil.example", `localhost.evil.example`]) {
      assert.deepStrictEqual((await sendRaw(port, [head(host)])).map(({ status }) => status), [403], host)
    }
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, `[::1]:${port}`]) {
      assert.deepStrictEqual((await sendRaw(port, [head(host)])).map(({ status }) => status), [401], host)
    }
  })

  it("restricts its cookie to https if its public address is https", async () => {
    const { port } = await gateway().startConsole({ CONSOLE_PUBLIC_URL: "https://console.example" })
    const body = JSON.stringify({ token: testAdminToken })
    const head = [
      "POST /api/session HTTP/1.1",
      "host: console.example",
      "origin: https://console.example",
      "x-gateway-console: 1",
      "content-type: application/json",
      `content-length: ${body.length}`,
      "connection: close"
    ]
    const [answer] = await sendRaw(port, [`${head.join("\r\n")}\r\n\r\n${body}`])
    assert.strictEqual(answer?.status, 204)
    const cookie = answer?.headers["set-cookie"] ?? ""
    assert.match(cookie, /; Secure/)
    assert.match(cookie, /; HttpOnly/)
    assert.match(cookie, /; SameSite=Strict/)
  })

  it("rejects a body above its limit", async () => {
    const { status } = await client.send("POST", "/api/keys", { name: "a", allowedModels: ["x".repeat(1_000_000)] })
    assert.isAtLeast(status, 400)
    assert.isBelow(status, 500)
  })
})

describe("guessing the admin token", () => {
  it("is throttled after five wrong tokens by any route; the right token and sessions pass at any time", async () => {
    const { port } = await gateway().startConsole()
    const inside = await ConsoleClient.signedIn(port)
    const outside = new ConsoleClient(port)
    const bearing = (token: string) =>
      outside.fetch("/api/keys", { headers: { authorization: `Bearer ${token}`, cookie: "" } })
    const statuses: Array<number> = []
    for (let guess = 0; guess < 3; guess++) statuses.push((await outside.signIn(`${testAdminToken}${guess}`)).status)
    for (let guess = 0; guess < 3; guess++) {
      statuses.push((await bearing(`${testAdminToken.slice(0, -1)}${guess}`)).status)
    }
    assert.deepStrictEqual(statuses, [401, 401, 401, 401, 401, 429])
    const throttled = await outside.signIn("another wrong admin token")
    assert.strictEqual(throttled.status, 429)
    assert.strictEqual(throttled.headers.get("connection"), "close")
    assert.match(throttled.headers.get("retry-after") ?? "", /^[1-9]\d?$/)
    // the administrator, at the same address
    assert.strictEqual((await bearing(testAdminToken)).status, 200)
    assert.strictEqual((await outside.signIn()).status, 204)
    assert.strictEqual((await inside.send("GET", "/api/keys")).status, 200)
  })

  it("does not lock the administrator out, even in a flood from the administrator's address", async () => {
    const { port } = await gateway().startConsole()
    const outside = new ConsoleClient(port)
    const guess = async (_: unknown, number: number) => {
      const response = await outside.fetch("/api/session", {
        method: "POST",
        body: JSON.stringify({ token: `wrong admin token number ${number}` })
      })
      return response.status
    }
    const flood = Array.from({ length: 200 }, guess)
    const bearer = { authorization: `Bearer ${testAdminToken}` }
    for (let time = 0; time < 5; time++) {
      const client = new ConsoleClient(port)
      assert.strictEqual((await client.signIn()).status, 204)
      assert.strictEqual((await new ConsoleClient(port).fetch("/api/keys", { headers: bearer })).status, 200)
    }
    const statuses = await Promise.all(flood)
    assert.strictEqual(statuses.filter((status) => status === 401).length, 5)
    assert.strictEqual(statuses.filter((status) => status === 429).length, 195)
  })
})

describe("path traversal", () => {
  const paths = [
    "/../../../../etc/passwd",
    "/assets/../../../main.ts",
    "/assets/..%2f..%2f..%2fmain.ts",
    "/assets/%2e%2e/%2e%2e/%2e%2e/main.ts",
    "/assets/%252e%252e/main.ts",
    "/assets/..\\..\\..\\main.ts",
    "/assets//etc/passwd",
    "/assets/sources%00.js",
    "/sources",
    "/.env",
    "//etc/passwd",
    "/index.html",
    "/assets/__proto__",
    "/assets/constructor",
    `/${"a/".repeat(2_000)}`
  ]

  it("does not leave the web app's folder", async () => {
    for (const path of paths) {
      const answer = await raw("GET", path)
      assert.notMatch(answer.body, /root:|import \*|^[0-9a-f]{64}$/m, path)
      assert.oneOf(answer.status, [200, 400, 404], path)
      // every path serves the same page
      if (answer.status === 200) assert.include(answer.body, "<title>Model Gateway</title>", path)
    }
  })

  it("does not leave the gateway's API through the playground", async () => {
    const ours = [`cookie: ${cookieName}=${client.cookie}`, "x-gateway-console: 1", `x-gateway-key: ${testKey}`]
    const models = await client.fetch("/gateway/v1/models", { headers: { "x-gateway-key": testKey } })
    assert.strictEqual(models.status, 200)
    assert.include(await models.text(), "local-chat")
    assert.strictEqual(models.headers.get("content-security-policy"), "default-src 'none'; sandbox")
    assert.strictEqual(models.headers.get("content-disposition"), "attachment")
    const elsewhere = [
      "/gateway/metrics",
      "/gateway/v1/../metrics",
      "/gateway/v1/%2e%2e/metrics",
      "/gateway/v1/..%2f..%2fmetrics",
      "/gateway/v1/../../healthz",
      "/gateway/openapi.json",
      "/gateway//evil.example/v1/models",
      "/gateway/@evil.example/v1/models",
      "/gateway/\\evil.example/v1/models",
      "/gateway/http://evil.example/v1/models"
    ]
    for (const path of elsewhere) {
      const answer = await raw("GET", path, ours)
      assert.oneOf(answer.status, [400, 404], path)
      assert.notInclude(answer.body, "gateway_requests_total")
    }
    const refused = [
      ours.slice(1),
      [`cookie: ${cookieName}=${"A".repeat(80)}`, ...ours.slice(1)],
      [...ours, "sec-fetch-site: cross-site"]
    ]
    for (const lines of refused) assert.oneOf((await raw("GET", "/gateway/v1/models", lines)).status, [401, 403])
    // the session is the console's own: without a key the ingress rejects the request
    assert.strictEqual((await raw("GET", "/gateway/v1/models", ours.slice(0, 2))).status, 401)
  })
})

describe("health and metrics", () => {
  it("are not at the public port, and pages are not at the health port", async () => {
    const { healthUrl, url } = gateway().processes.find(({ name, port: own }) => name === "console" && own === port)
      ?? assert.fail("no console")
    for (const path of ["/healthz", "/readyz", "/metrics"]) {
      const answer = await fetch(`${url}${path}`)
      assert.deepStrictEqual([answer.status, await answer.json()], [404, {
        _tag: "NotFound",
        message: "Not found. The paths of the admin API are listed at /api/openapi.json"
      }])
      assert.strictEqual((await fetch(`${healthUrl}${path}`)).status, 200, path)
    }
    for (const path of ["/", "/keys", "/api/keys", "/api/openapi.json"]) {
      assert.strictEqual((await fetch(`${healthUrl}${path}`)).status, 404, path)
    }
  })
})

describe("every response", () => {
  it("forbids browsers to run other scripts, be framed, sniff types or cache", async () => {
    const answers = await Promise.all([
      raw("GET", "/"),
      raw("GET", "/api/keys"),
      raw("GET", "/nothing/here"),
      raw("DELETE", "/api/keys/key_0"),
      raw("GET", "/gateway/v1/models"),
      raw("GET", "/api/keys", [`cookie: ${cookieName}=${client.cookie}`]),
      raw("POST", "/api/session", ["x-gateway-console: 1", "content-type: application/json", "content-length: 0"])
    ])
    for (const { headers } of answers) {
      const policy = headers["content-security-policy"] ?? ""
      assert.match(policy, /default-src 'none'/)
      assert.notMatch(policy, /unsafe-|\*|https?:/)
      assert.deepInclude(headers, {
        "x-frame-options": "DENY",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
        "cross-origin-resource-policy": "same-origin"
      })
    }
    assert.include(answers[0]?.headers["content-security-policy"], "script-src 'self'")
    const nonces = (await Promise.all([raw("GET", "/"), raw("GET", "/")])).map(({ body }) =>
      /nonce="([^"]+)"/.exec(body)?.[1]
    )
    assert.notStrictEqual(nonces[0], nonces[1])
  })

  it("and every log contain no token, cookie or key", () => {
    const secrets = [
      testAdminToken,
      testKey,
      testSecret,
      client.cookie ?? "",
      (client.cookie ?? "").split(".")[0] ?? ""
    ]
    for (const secret of secrets) assert.notInclude(gateway().log, secret)
  })
})
