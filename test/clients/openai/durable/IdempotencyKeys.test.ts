/** Requests with idempotency keys, with OpenAI's client and plain requests. */
import { assert, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { chatProviders } from "../../../fixture/gateway/ChatProviders.ts"
import { receivedBy, sharedGateway } from "../../../fixture/gateway/SharedGateway.ts"
import { eventually } from "../../../fixture/general/Eventually.ts"
import { storedEvents } from "../../../fixture/nats/UsageEvents.ts"

const shared = sharedGateway({ ...chatProviders(), services: ["embeddings", "images", "speech"] })

type Json = Readonly<Record<string, unknown>>

const picture = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP438AAAAQBAYD718vxAAAAAElFTkSuQmCC",
  "base64"
)

let keys = 0
const newKey = () => `order-${++keys}`

interface Asked {
  readonly path?: string
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

const chat = { model: "on-openai", messages: [{ role: "user", content: "Hello" }] }

const ask = async (
  idempotencyKey: string,
  { body = {}, headers, path = "/v1/chat/completions", signal }: Asked = {}
) => {
  const answer = await fetch(`${shared().url}${path}`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${shared().key}`,
      "content-type": "application/json",
      "idempotency-key": idempotencyKey,
      ...headers
    },
    body: JSON.stringify({ ...(path === "/v1/chat/completions" ? chat : {}), ...body }),
    signal: signal ?? null
  })
  return {
    status: answer.status,
    replayed: answer.headers.get("idempotency-replayed"),
    type: answer.headers.get("content-type"),
    bytes: Buffer.from(await answer.arrayBuffer())
  }
}

const codeOf = ({ bytes }: { readonly bytes: Buffer }) =>
  (JSON.parse(bytes.toString()) as { readonly error: Json }).error["code"]

const calls = () => shared().provider.requests.length
const usage = () => storedEvents(shared().nats)

const tasks = async (path = "", method = "GET") => {
  const answer = await fetch(`${shared().url}/v1/tasks${path}`, {
    method,
    headers: { authorization: `Bearer ${shared().key}` }
  })
  return await answer.json() as { readonly data: ReadonlyArray<Json> }
}

describe("an idempotency key", () => {
  const others: Readonly<Record<string, Asked>> = {
    "a stream": { body: { stream: true } },
    "a message": {
      path: "/v1/messages",
      headers: { "anthropic-version": "2023-06-01" },
      body: { ...chat, max_tokens: 10 }
    },
    "a response": { path: "/v1/responses", body: { model: "on-openai", input: "Hello" } },
    "embeddings": { path: "/v1/embeddings", body: { model: "local-embedding", input: "Hello" } },
    "speech": { path: "/v1/audio/speech", body: { model: "local-speech", input: "Hello", voice: "nova" } }
  }
  it.each(["a chat completion", ...Object.keys(others)])("gets the same answer again: %s", async (name) => {
    const asked = others[name] ?? {}
    const key = newKey()
    const before = await usage()
    const first = await ask(key, asked)
    assert.strictEqual(first.status, 200)
    assert.isNull(first.replayed)
    const made = calls()
    const second = await ask(key, asked)
    assert.strictEqual(second.replayed, "true")
    assert.deepStrictEqual({ ...second, replayed: null }, first)
    assert.strictEqual(calls(), made)
    await eventually(usage, (count) => count === before + 1)
  })

  it("gets the same answer again for a form, in which only the boundary differs", async () => {
    const key = newKey()
    const edit = async (prompt: string) => {
      const body = new FormData()
      body.set("model", "local-image")
      body.set("prompt", prompt)
      body.set("image", new Blob([picture], { type: "image/png" }), "a.png")
      const headers = { authorization: `Bearer ${shared().key}`, "idempotency-key": key }
      const answer = await fetch(`${shared().url}/v1/images/edits`, { method: "POST", headers, body })
      return { status: answer.status, replayed: answer.headers.get("idempotency-replayed"), text: await answer.text() }
    }
    const first = await edit("grayscale")
    assert.deepInclude(first, { status: 200, replayed: null })
    assert.deepStrictEqual(await edit("grayscale"), { ...first, replayed: "true" })
    assert.strictEqual((await edit("negative")).status, 422)
  })

  it.each([false, true])("joins a request that runs (stream: %s)", async (stream) => {
    const key = newKey()
    const before = calls()
    shared().provider.behaveOnce({ kind: "silent" })
    const { result } = await receivedBy(shared(), () => ask(key, { body: { stream } }))
    const joined = ask(key, { body: { stream } })
    await eventually(tasks, ({ data }) => data[0]?.["status"] === "in_progress")
    shared().provider.release()
    const [one, other] = await Promise.all([result, joined])
    assert.deepStrictEqual(one.bytes, other.bytes)
    assert.strictEqual(one.status, 200)
    assert.strictEqual(calls(), before + 1)
  })

  it("makes one task of many requests at once", async () => {
    const key = newKey()
    const before = calls()
    const answers = await Promise.all(Array.from({ length: 12 }, () => ask(key)))
    assert.deepStrictEqual(new Set(answers.map(({ bytes, status }) => `${status} ${bytes}`)).size, 1)
    assert.strictEqual(answers[0]?.status, 200)
    assert.strictEqual(calls(), before + 1)
  })

  it("is refused for another body, but not for another operation, model in the path or API key", async () => {
    const key = newKey()
    await ask(key)
    const other = await ask(key, { body: { temperature: 0 } })
    assert.strictEqual(other.status, 422)
    assert.strictEqual(codeOf(other), "idempotency_key_reused")
    assert.strictEqual(
      (await ask(key, { path: "/v1/responses", body: { model: "on-openai", input: "Hi" } })).replayed,
      null
    )
    const body = { contents: [{ role: "user", parts: [{ text: "Hi" }] }] }
    assert.strictEqual((await ask(key, { path: "/v1beta/models/on-openai:generateContent", body })).status, 200)
    assert.strictEqual((await ask(key, { path: "/v1beta/models/on-gemini:generateContent", body })).status, 422)
    const another = { headers: { authorization: `Bearer ${(await shared().createKeyWith({})).key}` } }
    assert.deepInclude(await ask(key, another), { status: 200, replayed: null })
  })

  it("must be visible ASCII", async () => {
    const refused = await ask("x".repeat(256))
    assert.strictEqual(refused.status, 400)
    assert.strictEqual(codeOf(refused), "invalid_idempotency_key")
  })

  it("is free again after a refusal, by the gateway or by the provider", async () => {
    const key = newKey()
    assert.strictEqual((await ask(key, { body: { messages: "none" } })).status, 400)
    shared().provider.behaveOnce({ kind: "status", status: 429 }, { kind: "status", status: 400 })
    assert.strictEqual((await ask(key)).status, 429)
    assert.strictEqual((await ask(key, { body: { temperature: 0 } })).status, 400)
    assert.deepInclude(await ask(key), { status: 200, replayed: null })
  })

  it("gets the same error again if the call may have been paid", async () => {
    const key = newKey()
    shared().provider.behaveOnce({ kind: "reset" })
    const first = await ask(key)
    assert.strictEqual(first.status, 502)
    const before = calls()
    const second = await ask(key)
    assert.deepInclude(second, { status: 502, replayed: "true", bytes: first.bytes })
    assert.strictEqual(calls(), before)
  })

  it("keeps the work going when its client hangs up, until the task is deleted", async () => {
    const key = newKey()
    const leave = new AbortController()
    shared().provider.behaveOnce({ kind: "silent" })
    const before = calls()
    const { result } = await receivedBy(
      shared(),
      () => ask(key, { signal: leave.signal }).catch(() => "left")
    )
    leave.abort()
    assert.strictEqual(await result, "left")
    const joined = ask(key)
    shared().provider.release()
    assert.strictEqual((await joined).status, 200)
    assert.strictEqual(calls(), before + 1)

    const next = newKey()
    shared().provider.behaveOnce({ kind: "silent" })
    const other = await receivedBy(shared(), () => ask(next))
    const { data: [task] } = await tasks("?limit=1")
    await tasks(`/${String(task?.["id"])}`, "DELETE")
    await other.received.closed
    // it may see the cancellation first
    assert.include([400, 404], (await other.result).status)
    assert.deepInclude(await ask(next), { status: 200, replayed: null })
  })

  it("stands for a response in the background, too", async () => {
    const client = new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })
    const create = (options: OpenAI.RequestOptions) =>
      client.responses.create({ model: "on-openai", input: "Think.", background: true }, options)
    const options = { headers: { "idempotency-key": newKey() } }
    const first = await create(options)
    await eventually(() => client.responses.retrieve(first.id), ({ status }) => status === "completed")
    const before = calls()
    assert.deepStrictEqual(await create(options), first)
    assert.strictEqual(calls(), before)
  })

  it("makes a task with `Prefer: respond-async`, whose answer a waiting client gets, too", async () => {
    const key = newKey()
    const accepted = await ask(key, { headers: { prefer: "respond-async" } })
    assert.strictEqual(accepted.status, 202)
    assert.strictEqual((await ask(key)).status, 200)
    const again = await ask(key, { headers: { prefer: "respond-async" } })
    assert.deepInclude(again, { status: 202, replayed: "true" })
    const { id } = JSON.parse(accepted.bytes.toString()) as { readonly id: string }
    assert.strictEqual((JSON.parse(again.bytes.toString()) as Json)["id"], id)
    // it is no response
    for (const [method, path] of [["GET", ""], ["GET", "?stream=true"], ["POST", "/cancel"], ["DELETE", ""]] as const) {
      const answer = await fetch(`${shared().url}/v1/responses/${id}${path}`, {
        method,
        headers: { authorization: `Bearer ${shared().key}` }
      })
      assert.strictEqual(answer.status, 404, `${method} ${path}`)
    }
  })
})
