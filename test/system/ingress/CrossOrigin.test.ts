/** What a page in a browser gets from ingress: preflights, answers and errors, with and without allowed origins. */
import { assert, describe, it } from "@effect/vitest"
import { once } from "node:events"
import { WebSocket } from "ws"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const page = "https://app.example.com"
const elsewhere = "https://evil.example"
const body = { model: "free-chat", messages: [{ role: "user", content: "hi" }] }

const preflight = (url: string, origin: string, method: string, headers?: string) =>
  fetch(url, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": method,
      ...(headers === undefined ? {} : { "access-control-request-headers": headers })
    }
  })

/** The names of the headers of CORS and their values, without their common start. */
const corsOf = ({ headers }: Response) =>
  Object.fromEntries(
    [...headers].filter(([name]) => name.startsWith("access-control-")).map(([name, value]) => [name.slice(15), value])
  )

/**
 * The headers of each client, in the order of the Fetch standard ("CORS-unsafe request-header names": sorted, in lower case): taken
 * from openai 6 (`buildHeaders`), @anthropic-ai/sdk 0.9x with `dangerouslyAllowBrowser`, and @google/genai 1.
 */
const stainless = "x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version," +
  "x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout"
const clients: ReadonlyArray<readonly [what: string, method: string, path: string, headers: string | undefined]> = [
  ["openai", "POST", "/v1/chat/completions", `authorization,content-type,${stainless}`],
  [
    "openai, with an idempotency key",
    "POST",
    "/v1/responses",
    `authorization,content-type,idempotency-key,${stainless}`
  ],
  [
    "anthropic",
    "POST",
    "/v1/messages",
    `anthropic-dangerous-direct-browser-access,anthropic-version,content-type,x-api-key,${stainless}`
  ],
  ["genai", "POST", "/v1beta/models/m:streamGenerateContent?alt=sse", "content-type,x-goog-api-client,x-goog-api-key"],
  ["a list of models", "GET", "/v1/models", "authorization"],
  ["a deletion", "DELETE", "/v1/responses/resp_1", "authorization"],
  // the page can then read the 404 and its suggestion
  ["a base URL without its end", "POST", "/chat/completions", "authorization,content-type"],
  ["no header of its own", "DELETE", "/v1/files/file-1", undefined]
]

describe("an ingress with allowed origins", () => {
  const shared = sharedGateway({
    environmentOf: (service) => service === "ingress" ? { GATEWAY_CORS_ORIGINS: `http://localhost:5173, ${page}` } : {}
  })

  it.for(clients)("answers the preflight of %s", async ([_, method, path, headers]) => {
    const answer = await preflight(`${shared().url}${path}`, page, method, headers)
    assert.strictEqual(answer.status, 204)
    assert.strictEqual(await answer.text(), "")
    assert.deepStrictEqual(corsOf(answer), {
      "allow-origin": page,
      "allow-methods": "GET, HEAD, POST, DELETE",
      "expose-headers": "*",
      "max-age": "7200",
      "allow-headers": headers ?? ""
    })
    assert.strictEqual(answer.headers.get("vary"), "origin, access-control-request-headers")
  })

  const answers: ReadonlyArray<readonly [what: string, status: number, ask: (origin: string) => Promise<Response>]> = [
    ["an answer", 200, (origin) => shared().request(body, { headers: { origin } })],
    ["a stream", 200, (origin) => shared().request({ ...body, stream: true }, { headers: { origin } })],
    ["a wrong request", 400, (origin) => shared().request({}, { headers: { origin } })],
    ["a wrong key", 401, (origin) => shared().request(body, { headers: { origin, authorization: "Bearer x" } })],
    ["a list without a key", 401, (origin) => fetch(`${shared().url}/v1/models`, { headers: { origin } })],
    ["an unknown path", 404, (origin) => fetch(`${shared().url}/nowhere`, { headers: { origin } })],
    ["a body that is too large", 413, (origin) =>
      fetch(`${shared().url}/v1/chat/completions`, {
        method: "POST",
        headers: { origin, authorization: `Bearer ${shared().key}`, "content-type": "application/json" },
        body: "x".repeat(33 * 1024 * 1024)
      })],
    ["a key over its limit", 429, async (origin) => {
      const { key } = await shared().createKeyWith({ requestsPerMinute: 1 })
      const headers = { origin, authorization: `Bearer ${key}` }
      await (await shared().request(body, { headers })).text()
      return shared().request(body, { headers })
    }],
    ["the reference", 200, (origin) => fetch(`${shared().url}/docs`, { headers: { origin } })],
    ["its head", 200, (origin) => fetch(`${shared().url}/docs`, { method: "HEAD", headers: { origin } })]
  ]

  it.for(answers)("lets the page read %s (%i), and no other page", async ([_, status, ask]) => {
    for (const [origin, cors] of [[page, { "allow-origin": page, "expose-headers": "*" }], [elsewhere, {}]] as const) {
      const answer = await ask(origin)
      await answer.text()
      assert.strictEqual(answer.status, status)
      assert.deepStrictEqual(corsOf(answer), cors)
      assert.include(answer.headers.get("vary") ?? "", "origin")
    }
  })

  const refused: ReadonlyArray<readonly [what: string, origin: string]> = [
    ["another site", elsewhere],
    ["the site over HTTP", "http://app.example.com"],
    ["another port", `${page}:8443`],
    ["a site whose name begins with it", `${page}.evil.example`],
    ["a site whose name ends with it", "https://evilapp.example.com"],
    ["a sandboxed frame", "null"]
  ]

  it.for(refused)("refuses the preflight of %s", async ([_, origin]) => {
    const answer = await preflight(`${shared().url}/v1/messages`, origin, "POST", "x-api-key")
    assert.strictEqual(answer.status, 403)
    assert.deepStrictEqual(corsOf(answer), {})
    const { error, type } = await answer.json() as { readonly type: string; readonly error: Record<string, string> }
    // Anthropic's form
    assert.strictEqual(type, "error")
    assert.deepInclude(error, { type: "permission_error", code: "origin_not_allowed", param: "origin" })
    assert.include(error["message"], `'${origin}'`)
  })

  it.for(
    [[page, "open"], [elsewhere, 403], [undefined, "open"]] as const
  )("opens a WebSocket for the origin %s: %s", async ([origin, expected]) => {
    const { key, url } = shared()
    const headers = { authorization: `Bearer ${key}`, ...(origin === undefined ? {} : { origin }) }
    const socket = new WebSocket(`${url.replace("http", "ws")}/v1/responses`, { headers })
    if (expected === "open") {
      await once(socket, "open")
      return socket.terminate()
    }
    socket.on("error", () => {})
    const [, { statusCode }] = await once(socket, "unexpected-response") as [unknown, { readonly statusCode: number }]
    assert.strictEqual(statusCode, expected)
    socket.terminate()
  })
})

describe("an ingress without allowed origins", () => {
  const shared = sharedGateway()

  it.for(clients)("refuses the preflight of %s and says what to set", async ([_, method, path, headers]) => {
    const answer = await preflight(`${shared().url}${path}`, page, method, headers)
    assert.strictEqual(answer.status, 403)
    assert.deepStrictEqual(corsOf(answer), {})
    const { error } = await answer.json() as { readonly error: { readonly message: string } }
    assert.include(error.message, "GATEWAY_CORS_ORIGINS")
  })

  it("answers requests as without an origin", async () => {
    const answer = await shared().request(body, { headers: { origin: page } })
    assert.strictEqual(answer.status, 200)
    assert.deepStrictEqual(corsOf(answer), {})
    assert.isNull(answer.headers.get("vary"))
  })

  // RFC 9110, 9.3.2: HEAD is like GET without content; 9.3.7 leaves OPTIONS to the server
  const others: ReadonlyArray<readonly [method: string, path: string, status: number]> = [
    ["OPTIONS", "/v1/chat/completions", 404],
    ["OPTIONS", "/nowhere", 404],
    ["HEAD", "/v1/models", 200],
    ["HEAD", "/docs", 200],
    ["HEAD", "/v1/chat/completions", 404],
    ["HEAD", "/nowhere", 404]
  ]

  it.for(others)("answers %s %s with %i", async ([method, path, status]) => {
    const answer = await fetch(`${shared().url}${path}`, {
      method,
      headers: { authorization: `Bearer ${shared().key}` }
    })
    assert.strictEqual(answer.status, status)
    assert.strictEqual((await answer.text()) === "", method === "HEAD")
  })
})
