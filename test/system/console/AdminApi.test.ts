/** The admin API for keys, and its effect on a running ingress. */
import { Ajv2020 } from "ajv/dist/2020.js"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { ConsoleClient } from "../../fixture/client/ConsoleClient.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { Gateway } from "../../fixture/gateway/Gateway.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

interface Key {
  readonly id: string
  readonly name: string
  readonly disabled: boolean
  readonly requestsPerMinute: number | null
}

const gateway = sharedGateway()
let client: ConsoleClient

beforeAll(async () => {
  const { port } = await gateway().startConsole()
  client = await ConsoleClient.signedIn(port, "Ada")
})

const create = async (settings: object) => {
  const { body, status } = await client.send<{ readonly key: Key; readonly secret: string }>(
    "POST",
    "/api/keys",
    settings
  )
  assert.strictEqual(status, 201, JSON.stringify(body))
  return body
}

const findKey = async (id: string) =>
  (await client.send<ReadonlyArray<Key>>("GET", "/api/keys")).body.find((key) => key.id === id)

/** The status of a request with this key. */
const use = async (apiKey: string): Promise<number> => {
  const openai = new OpenAI({ baseURL: `${gateway().url}/v1`, apiKey, maxRetries: 0 })
  try {
    await openai.chat.completions.create({ model: "free-chat", messages: [{ role: "user", content: "Hello" }] })
    return 200
  } catch (error) {
    if (error instanceof OpenAI.APIError) return error.status ?? 0
    throw error
  }
}

describe("the admin API", () => {
  it("creates a key that works, shows its secret once, and lists it without", async () => {
    const { key, secret } = await create({ name: "search team", requestsPerMinute: 600 })
    assert.match(secret, /^sk-gw-[0-9A-Za-z]{32}$/)
    await eventually(() => use(secret), (status) => status === 200)
    assert.deepInclude(await findKey(key.id), { name: "search team", requestsPerMinute: 600, disabled: false })
    const response = await client.fetch("/api/keys")
    assert.notInclude(await response.text(), secret.slice("sk-gw-".length))
  })

  it("revokes a key for all further requests", async () => {
    const { key, secret } = await create({ name: "short-lived" })
    await eventually(() => use(secret), (status) => status === 200)
    assert.strictEqual((await client.send("DELETE", `/api/keys/${key.id}`)).status, 204)
    await eventually(() => use(secret), (status) => status === 401)
    assert.isUndefined(await findKey(key.id))
    assert.strictEqual((await client.send("DELETE", `/api/keys/${key.id}`)).status, 404)
  })

  it("disables and enables a key, and edits only the given fields", async () => {
    const { key, secret } = await create({ name: "sometimes", tokensPerMinute: 1_000 })
    await eventually(() => use(secret), (status) => status === 200)
    await client.send("PATCH", `/api/keys/${key.id}`, { disabled: true })
    await eventually(() => use(secret), (status) => status === 403)
    await client.send("PATCH", `/api/keys/${key.id}`, { disabled: false })
    await eventually(() => use(secret), (status) => status === 200)
    const { body, status } = await client.send("PATCH", `/api/keys/${key.id}`, { requestsPerMinute: 5, name: "often" })
    assert.strictEqual(status, 200)
    assert.deepInclude(body, { name: "often", requestsPerMinute: 5, tokensPerMinute: 1_000, disabled: false })
  })

  it("names the wrong field", async () => {
    const wrong: ReadonlyArray<readonly [object, field: string, says: string]> = [
      [{}, "name", "name: is required"],
      [{ name: "" }, "name", "name: must be a string of 1 to 200 characters"],
      [{ name: "a", weight: 101 }, "weight", "weight: must be a whole number from 1 to 100"],
      [
        { name: "a", requestsPerMinute: 0 },
        "requestsPerMinute",
        "requestsPerMinute: must be a whole number of at least 1"
      ],
      [{ name: "a", expiresAt: "soon" }, "expiresAt", "expiresAt: must be a date such as 2027-01-31"],
      [{ name: "a", allowedModels: ["g*t"] }, "allowedModels", "allowedModels[0]: must be a model's name"],
      // a misspelt limit would make a key without one
      [
        { name: "a", requestPerMinute: 5 },
        "requestPerMinute",
        "requestPerMinute: is unknown: the known fields are name, "
      ],
      // JavaScript would read these as 1 December 2001 and 3 March
      [{ name: "a", expiresAt: "12" }, "expiresAt", "expiresAt: must be a date such as 2027-01-31"],
      [{ name: "a", expiresAt: "2027-02-31" }, "expiresAt", "expiresAt: must be a date such as 2027-01-31"]
    ]
    for (const [settings, field, says] of wrong) {
      const { body, status } = await client.send<{
        readonly detail: string
        readonly errors: ReadonlyArray<{ readonly path: Array<string> }>
      }>("POST", "/api/keys", settings)
      assert.strictEqual(status, 400)
      assert.deepStrictEqual(body.errors[0]?.path.slice(0, 2), ["payload", field])
      assert.isTrue(body.detail.startsWith(says), body.detail)
    }
  })

  it("says of a body that is not JSON that it is not", async () => {
    const headers = { "content-type": "application/json" }
    const response = await client.fetch("/api/keys", { method: "POST", headers, body: "{\"name\":" })
    assert.strictEqual(response.status, 400)
    const { detail } = await response.json() as { readonly detail: string }
    assert.strictEqual(detail, "The request body is not valid JSON")
  })

  it("rejects an edit with an unknown field", async () => {
    const { key } = await create({ name: "as it was", requestsPerMinute: 10 })
    const answer = await client.send<{ readonly detail: string }>("PATCH", `/api/keys/${key.id}`, {
      name: "other",
      requestPerMinute: 5
    })
    assert.strictEqual(answer.status, 400)
    assert.match(answer.body.detail, /^requestPerMinute: is unknown/)
    assert.deepInclude(await findKey(key.id), { name: "as it was", requestsPerMinute: 10 })
  })

  it("logs the author of each change, newest first, and never a secret", async () => {
    const { key, secret } = await create({ name: "watched" })
    await client.send("PATCH", `/api/keys/${key.id}`, { requestsPerMinute: 7 })
    await client.send("PATCH", `/api/keys/${key.id}`, { disabled: true })
    await client.send("DELETE", `/api/keys/${key.id}`)
    const response = await client.fetch("/api/key-changes")
    const text = await response.text()
    const changes = (JSON.parse(text) as ReadonlyArray<{ readonly key: string; readonly action: string }>).filter(
      (change) => change.key === key.id
    )
    assert.deepStrictEqual(changes.map(({ action }) => action), ["revoked", "disabled", "edited", "created"])
    const edited: object = changes[2] ?? {}
    assert.deepInclude(edited, { by: "Ada", name: "watched", settings: { requestsPerMinute: 7 } })
    assert.notInclude(text, secret.slice("sk-gw-".length))
    assert.notInclude(gateway().log, secret.slice("sk-gw-".length))
  })

  it("logs only the origin of a webhook's URL, whose path may be a secret", async () => {
    const { key } = await create({ name: "announced" })
    const webhook = `/api/keys/${key.id}/webhook`
    const secret = "c2VjcmV0LXBhdGg"
    const { status } = await client.send("PUT", webhook, { url: `https://hooks.example:8443/${secret}?t=${secret}#a` })
    assert.strictEqual(status, 200)
    assert.strictEqual((await client.send("DELETE", webhook)).status, 204)
    const text = await (await client.fetch("/api/key-changes")).text()
    const changes = (JSON.parse(text) as ReadonlyArray<{ readonly key: string; readonly settings?: object }>)
      .filter((change) => change.key === key.id)
      .slice(0, 2)
    assert.deepStrictEqual(changes.map(({ settings }) => settings), [
      { webhook: null },
      { webhook: "https://hooks.example:8443" }
    ])
    assert.notInclude(text, secret)
  })

  it("logs changes made on the command line too", async () => {
    const printed = await gateway().admin("keys", "create", "--name", "by hand")
    const id = /key_[0-9A-Za-z]{12}/.exec(printed)?.[0] ?? assert.fail(printed)
    await gateway().admin("keys", "disable", id)
    await gateway().admin("keys", "revoke", id)
    const { body } = await client.send<
      ReadonlyArray<{ readonly key: string; readonly action: string; readonly by: string }>
    >(
      "GET",
      "/api/key-changes"
    )
    const changes = body.filter(({ key }) => key === id)
    assert.deepStrictEqual(changes.map(({ action }) => action), ["revoked", "disabled", "created"])
    for (const { by } of changes) assert.match(by, / at the command line$/)
  })

  it("serves its own description", async () => {
    const { body } = await client.send<{ readonly paths: Record<string, Record<string, object>> }>(
      "GET",
      "/api/openapi.json"
    )
    assert.containsAllKeys(body.paths, ["/api/session", "/api/keys", "/api/keys/{id}", "/api/key-changes"])
  })

  it("describes the patterns that it checks, and answers as described, also with 404", async () => {
    interface Operation {
      readonly parameters?: ReadonlyArray<{ readonly name: string; readonly schema: { readonly pattern?: string } }>
      readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, object>> }>>
    }
    const { body: document } = await client.send<{
      readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
      readonly components: object
    }>("GET", "/api/openapi.json")
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    const patternOf = (path: string, name: string) =>
      new RegExp(
        document.paths[path]?.["get"]?.parameters?.find((one) => one.name === name)?.schema.pattern
          ?? assert.fail(`${path}: ${name} has no pattern`)
      )
    for (const name of ["from", "to", "key"]) {
      const pattern = patternOf("/api/usage", name)
      const given: Record<string, string> = { from: "2026-11-01", to: "2026-11-30", by: "day", key: "key_0" }
      assert.match(given[name] ?? "", pattern)
      assert.notMatch("not/this", pattern)
      const query = new URLSearchParams({ ...given, [name]: "not/this" })
      assert.strictEqual((await client.send("GET", `/api/usage?${query}`)).status, 400, name)
    }
    const isDescribed = async (method: string, path: string, asked: string) => {
      const response = await client.fetch(asked, { method, ...(method === "PATCH" ? { body: "{}" } : {}) })
      const { status } = response
      const body: unknown = await response.json()
      const [type = ""] = response.headers.get("content-type")?.split(";") ?? []
      const content = document.paths[path]?.[method.toLowerCase()]?.responses[status]?.content?.[type]
      const { schema } = content as { readonly schema?: object } ?? {}
      const validate = ajv.compile({
        ...(schema ?? assert.fail(`${method} ${asked}: ${status} ${type}`)),
        components: document.components
      })
      assert.isTrue(validate(body), `${method} ${asked}: ${status} ${JSON.stringify(body)}`)
      return status
    }
    const ids = ["key_0", "nothing", "", "a/b", "not%20this", "a".repeat(129), "a".repeat(5_000)]
    for (const method of ["PATCH", "DELETE"]) {
      const statuses: Array<number> = []
      for (const id of ids) statuses.push(await isDescribed(method, "/api/keys/{id}", `/api/keys/${id}`))
      assert.deepStrictEqual(statuses, [404, 404, 404, 404, 400, 400, 404], method)
    }
    for (const id of ["nothing", "a/b", "a".repeat(5_000)]) {
      assert.strictEqual(await isDescribed("GET", "/api/traces/{id}", `/api/traces/${id}`), 404)
    }
    assert.strictEqual(await isDescribed("GET", "/api/traces/{id}", `/api/traces/${"a".repeat(129)}`), 400)
  })
})

describe("the admin API without NATS", () => {
  it.live("reports the outage to a signed-in client instead of asking it to sign in again", () =>
    Gateway.runHere({ workers: 0 }, async (gateway) => {
      const { port } = await gateway.startConsole()
      const client = await ConsoleClient.signedIn(port, "Ada")
      gateway.nats.freeze()
      const strangers = new ConsoleClient(port)
      const answers = await Promise.all([
        client.send<object>("GET", "/api/session"),
        client.send<object>("GET", "/api/keys"),
        strangers.send<object>("GET", "/api/keys")
      ])
      gateway.nats.thaw()
      assert.deepStrictEqual(answers.map(({ status }) => status), [503, 503, 401])
      assert.deepInclude(answers[0]?.body, { _tag: "Unavailable" })
      await eventually(() => client.send("GET", "/api/session"), ({ status }) => status === 200)
    }))
})
