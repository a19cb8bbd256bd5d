/** Responses in the background and answers as tasks, with OpenAI's client. */
import { assert, describe, it } from "@effect/vitest"
import OpenAI from "openai"
import { chatProviders } from "../../fixture/gateway/ChatProviders.ts"
import { receivedBy, sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { storedEvents } from "../../fixture/nats/UsageEvents.ts"

const shared = sharedGateway(chatProviders())

type Json = Readonly<Record<string, unknown>>

const client = (key = shared().key) => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: key, maxRetries: 0 })

const errorOf = async (promise: Promise<unknown>) => {
  const error = await promise.then(() => assert.fail("no error"), (error: unknown) => error)
  assert.instanceOf(error, OpenAI.APIError)
  const { code, param, status } = error
  return { status, param, code }
}

const isRunning = (status: string | undefined): boolean => status === "queued" || status === "in_progress"
const untilEnded = (id: string) => eventually(() => client().responses.retrieve(id), ({ status }) => !isRunning(status))

const ask = async (path: string, init: RequestInit = {}) => {
  const headers = { authorization: `Bearer ${shared().key}`, "content-type": "application/json", ...init.headers }
  const answer = await fetch(`${shared().url}${path}`, { ...init, headers })
  return { status: answer.status, headers: answer.headers, body: await answer.json() as Json }
}

const textOf = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
  const answer = await fetch(`${shared().url}${path}`, {
    headers: { authorization: `Bearer ${shared().key}`, ...headers }
  })
  return answer.text()
}

const usage = () => storedEvents(shared().nats)

describe.each(["on-responses", "on-anthropic"])("%s: a response in the background", (model) => {
  it("is answered at once, and has the status of its work until it is complete", async () => {
    shared().provider.say({ text: "Slowly." })
    shared().provider.behaveOnce({ kind: "silent" })
    const before = await usage()
    const { received, result } = await receivedBy(
      shared(),
      () => client().responses.create({ model, input: "Think.", background: true, metadata: { a: "b" } })
    )
    const created = await result
    assert.deepInclude(created as object, { status: "queued", background: true, metadata: { a: "b" }, output: [] })
    assert.notStrictEqual((received.json as Json)["background"], true)
    assert.strictEqual((await client().responses.retrieve(created.id)).status, "in_progress")
    shared().provider.release()
    const done = await untilEnded(created.id)
    assert.deepInclude(done as object, {
      id: created.id,
      status: "completed",
      background: true,
      output_text: "Slowly."
    })
    const next = await client().responses.create({ model, input: "And?", previous_response_id: created.id })
    assert.strictEqual(next.previous_response_id, created.id)
    assert.strictEqual((await client().responses.cancel(created.id)).status, "completed")
    await eventually(usage, (count) => count === before + 2)
  })

  it("is cancelled, which stops the provider's work, and cancelled again without effect", async () => {
    shared().provider.behaveOnce({ kind: "silent" })
    const before = await usage()
    const { received, result } = await receivedBy(
      shared(),
      () => client().responses.create({ model, input: "Think.", background: true })
    )
    const { id } = await result
    assert.strictEqual((await client().responses.cancel(id)).status, "cancelled")
    await received.closed
    assert.strictEqual((await client().responses.cancel(id)).status, "cancelled")
    assert.deepInclude(await client().responses.retrieve(id) as object, { id, status: "cancelled", output: [] })
    await eventually(usage, (count) => count === before + 1)
    await client().responses.delete(id)
    assert.deepInclude(await errorOf(client().responses.retrieve(id)), { status: 404 })
  })

  it("is streamed while it is made, and again after any of its events", async () => {
    const before = await usage()
    shared().provider.say({ text: "One two three." })
    const created = await client().responses.create({ model, input: "Count.", background: true, stream: true })
    const events = await Array.fromAsync(created)
    assert.deepStrictEqual(events.map(({ sequence_number }) => sequence_number), events.map((_, index) => index))
    const [first, last] = [events[0], events.at(-1)]
    assert(first?.type === "response.created" && last?.type === "response.completed")
    assert.deepInclude(last.response as object, { id: first.response.id, background: true, status: "completed" })
    for (const after of [0, 3, events.length - 2, events.length - 1]) {
      const rest = await client().responses.retrieve(first.response.id, { stream: true, starting_after: after })
      assert.deepStrictEqual(await Array.fromAsync(rest), events.slice(after + 1))
    }
    const stored = await client().responses.retrieve(first.response.id)
    assert.strictEqual(stored.output_text, "One two three.")
    await eventually(usage, (count) => count === before + 1)
  })

  it("ends its stream with an error if it is cancelled", async () => {
    const before = await usage()
    shared().provider.say({ text: "One two three four five six seven." })
    shared().provider.behaveOnce({ kind: "hold", after: 6 })
    const created = await client().responses.create({ model, input: "Count.", background: true, stream: true })
    const events = created[Symbol.asyncIterator]()
    const first = (await events.next()).value
    assert(first?.type === "response.created")
    const { id } = first.response
    assert.strictEqual((await client().responses.cancel(id)).status, "cancelled")
    const error = await errorOf((async () => {
      while (!(await events.next()).done);
    })())
    assert.deepInclude(error, { code: "invalid_prompt" })
    const lines = await textOf(`/v1/responses/${id}?stream=true`)
    const data = lines.split("\n").filter((line) => line.startsWith("data: ")).map((line) =>
      JSON.parse(line.slice(6)) as Json
    )
    assert.deepStrictEqual(data.map((event) => event["sequence_number"]), data.map((_, index) => index))
    assert.deepInclude(data.at(-1)?.["response"], { id, status: "cancelled" })
    assert.strictEqual(await textOf(`/v1/responses/${id}?stream=true&starting_after=${data.length - 1}`), "")
    await eventually(usage, (count) => count === before + 1)
  })

  it("fails with the provider's error", async () => {
    shared().provider.behaveOnce({ kind: "status", status: 400, error: { message: "no thanks" } })
    const { id } = await client().responses.create({ model, input: "Think.", background: true })
    const { error, status } = await untilEnded(id)
    assert.strictEqual(status, "failed")
    assert.include(error?.message, "no thanks")
  })
})

describe("a response in the background", () => {
  const model = "on-openai"

  it("must be stored", async () => {
    const create = (more: object) =>
      client().responses.create(
        { model, input: "Hi", background: true, ...more } as OpenAI.Responses.ResponseCreateParams
      )
    assert.deepInclude(await errorOf(create({ store: false })), { status: 400, param: "background" })
  })

  it("is streamed again only if it was created with a stream, and from a number", async () => {
    const create = (background: boolean) => client().responses.create({ model, input: "Hi", background })
    const stream = (id: string, query = "") => ask(`/v1/responses/${id}?stream=true${query}`)
    for (const background of [true, false]) {
      const { body, status } = await stream((await create(background)).id)
      assert.deepInclude({ ...body["error"] as Json, status } as Json, { status: 400, param: "stream" })
    }
    const streamed = await client().responses.create({ model, input: "Hi", background: true, stream: true })
    const first = (await Array.fromAsync(streamed))[0]
    assert(first?.type === "response.created")
    const { body, status } = await stream(first.response.id, "&starting_after=last")
    assert.deepInclude({ ...body["error"] as Json, status } as Json, { status: 400, param: "starting_after" })
    assert.strictEqual((await stream(`resp_${"0".repeat(32)}`)).status, 404)
  })

  it("fails in its stream if the provider fails after it has begun", async () => {
    shared().provider.behaveOnce({ kind: "cut", after: 3 })
    const created = await client().responses.create({ model, input: "Hi", background: true, stream: true })
    assert.deepInclude(await errorOf(Array.fromAsync(created)), { code: "server_error" })
  })

  it("is refused with the provider's status if it has not begun", async () => {
    shared().provider.behaveOnce({ kind: "status", status: 400, error: { message: "no thanks" } })
    const created = client().responses.create({ model, input: "Hi", background: true, stream: true })
    assert.deepInclude(await errorOf(created), { status: 400 })
  })

  it("is the only kind that can be cancelled", async () => {
    const { id } = await client().responses.create({ model, input: "Hi" })
    assert.deepInclude(await errorOf(client().responses.cancel(id)), { status: 400, param: "response_id" })
    const unknown = `resp_${"0".repeat(32)}`
    assert.deepInclude(await errorOf(client().responses.cancel(unknown)), { status: 404, param: "response_id" })
  })

  it("belongs to its key's owner", async () => {
    const { id } = await client().responses.create({ model, input: "Hi", background: true })
    await untilEnded(id)
    const other = (await shared().createKeyWith({})).key
    assert.deepInclude(await errorOf(client(other).responses.retrieve(id)), { status: 404 })
    assert.deepInclude(await errorOf(client(other).responses.cancel(id)), { status: 404 })
  })
})

describe("an answer that the client prefers to get later", () => {
  const later = (body: object) =>
    ask("/v1/chat/completions", {
      method: "POST",
      headers: { prefer: "respond-async, wait=5" },
      body: JSON.stringify({ model: "on-anthropic", messages: [{ role: "user", content: "Hello" }], ...body })
    })

  it("is a task, whose content is the answer", async () => {
    shared().provider.say({ text: "Later." })
    const { body, headers, status } = await later({})
    assert.strictEqual(status, 202)
    assert.strictEqual(headers.get("preference-applied"), "respond-async")
    const location = headers.get("location") ?? ""
    assert.strictEqual(location, `/v1/tasks/${String(body["id"])}`)
    const task = await eventually(() => ask(location), ({ body }) => !isRunning(String(body["status"])))
    assert.deepInclude(task.body, { status: "completed", operation: "chat.completions", url: `${location}/content` })
    const content = await ask(`${location}/content`)
    assert.strictEqual(content.status, 200)
    const [choice] = content.body["choices"] as ReadonlyArray<{ readonly message: Json }>
    assert.strictEqual(choice?.message["content"], "Later.")
    const { body: list } = await ask("/v1/tasks?limit=1")
    assert.deepInclude(list, { object: "list", first_id: body["id"], last_id: body["id"] })
    assert.strictEqual((await ask(location, { method: "DELETE" })).status, 200)
    assert.strictEqual((await ask(location)).status, 404)
  })

  it("has no content before its end, and none if it is cancelled", async () => {
    shared().provider.behaveOnce({ kind: "silent" })
    const { received, result } = await receivedBy(shared(), () => later({}))
    const location = (await result).headers.get("location") ?? ""
    assert.strictEqual((await ask(`${location}/content`)).status, 400)
    const cancelled = await ask(`${location}/cancel`, { method: "POST" })
    assert.strictEqual(cancelled.body["status"], "cancelled")
    await received.closed
    assert.strictEqual((await ask(`${location}/content`)).status, 400)
  })

  it("has events if the client wants a stream, each with its number as its id", async () => {
    shared().provider.say({ text: "One two." })
    const { body, status } = await later({ stream: true })
    assert.strictEqual(status, 202)
    const path = `/v1/tasks/${String(body["id"])}/events`
    const whole = await textOf(path)
    const events = whole.split("\n\n").slice(0, -1)
    assert.deepStrictEqual(events.map((event) => event.split("\n")[0]), events.map((_, index) => `id: ${index}`))
    assert.include(events.at(-1), "data: [DONE]")
    const rest = await textOf(path, { "last-event-id": "1" })
    assert.strictEqual(rest, events.slice(2).map((event) => `${event}\n\n`).join(""))
    assert.strictEqual((await ask(path, { headers: { "last-event-id": "-1" } })).status, 400)
    const other = await later({})
    assert.strictEqual((await ask(`/v1/tasks/${String(other.body["id"])}/events`)).status, 400)
  })
})
