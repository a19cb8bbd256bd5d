/** Batches with OpenAI's client. */
import { assert, describe, it } from "@effect/vitest"
import OpenAI, { toFile } from "openai"
import { chatProviders } from "../../../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../../../fixture/gateway/SharedGateway.ts"
import { eventually } from "../../../fixture/general/Eventually.ts"
import { eventsIn } from "../../../fixture/nats/UsageEvents.ts"

const shared = sharedGateway({
  ...chatProviders(),
  services: ["batches", "embeddings"],
  environment: { WORKER_TASK_SLOTS: "16" }
})
const client = (key = shared().key) => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: key, maxRetries: 0 })

interface Line {
  readonly id: string
  readonly custom_id: string
  readonly response: { readonly status_code: number; readonly body: Readonly<Record<string, unknown>> } | null
  readonly error: { readonly code: string; readonly message: string } | null
}

type Body = Readonly<Record<string, unknown>>

const chat = "/v1/chat/completions"
const ask = (text: string, model = "on-openai"): Body => ({ model, messages: [{ role: "user", content: text }] })

const upload = async (requests: ReadonlyArray<Body>, url: string = chat) => {
  const lines = requests.map((body, at) => JSON.stringify({ custom_id: `c${at}`, method: "POST", url, body }))
  return client().files.create({ file: await toFile(Buffer.from(lines.join("\n")), "in.jsonl"), purpose: "batch" })
}

const create = async (requests: ReadonlyArray<Body>, endpoint: string = chat, url = endpoint) =>
  client().batches.create({
    input_file_id: (await upload(requests, url)).id,
    endpoint: endpoint as typeof chat,
    completion_window: "24h",
    metadata: { purpose: "test" }
  })

const get = (id: string) => client().batches.retrieve(id)
const isOver = ({ status }: OpenAI.Batch) => ["completed", "failed", "expired", "cancelled"].includes(status)
const ended = (id: string) => eventually(() => get(id), isOver)

const linesIn = async (file: string | undefined): Promise<ReadonlyArray<Line>> => {
  if (file === undefined || file === null) return []
  const text = await (await client().files.content(file)).text()
  return text.trimEnd().split("\n").map((line) => JSON.parse(line) as Line)
}

const errorOf = async (promise: Promise<unknown>) => {
  const error = await promise.then(() => assert.fail("no error"), (error: unknown) => error)
  assert.instanceOf(error, OpenAI.APIError)
  const { code, message, param, status } = error
  return { status, param, code, message }
}

describe("a batch", () => {
  it("answers each of its requests once, and meters it", async () => {
    const requests = Array.from({ length: 40 }, (_, at) => ask(`Question ${at}`))
    const before = shared().provider.requests.length
    const created = await create([...requests, ask("Hello", "no-such-model"), { model: "on-openai" }])
    assert.deepInclude(created, { object: "batch", endpoint: chat, status: "validating", completion_window: "24h" })
    assert.deepStrictEqual(created.metadata, { purpose: "test" })
    const batch = await ended(created.id)
    assert.deepInclude(batch, {
      status: "completed",
      request_counts: { total: 42, completed: 40, failed: 2 }
    })
    assert.isNull(batch.errors)
    const answers = await linesIn(batch.output_file_id)
    assert.sameMembers(answers.map(({ custom_id }) => custom_id), requests.map((_, at) => `c${at}`))
    for (const { custom_id, error, response } of answers) {
      assert.isNull(error)
      assert.strictEqual(response?.status_code, 200)
      assert.include(JSON.stringify(response?.body), `Question ${custom_id.slice(1)}`)
    }
    const errors = await linesIn(batch.error_file_id)
    assert.deepStrictEqual(errors.map(({ custom_id }) => custom_id).toSorted(), ["c40", "c41"])
    const unknown = errors.find(({ custom_id }) => custom_id === "c40")
    assert.strictEqual(unknown?.response?.status_code, 404)
    assert.deepInclude(unknown?.response?.body["error"], { code: "model_not_found" })
    assert.strictEqual(shared().provider.requests.length, before + 40)
    const metered = await eventually(
      async () => (await eventsIn(shared().nats)).filter(({ id }) => id.startsWith(created.id)),
      (events) => events.length >= 40
    )
    assert.lengthOf(metered, 40)
    assert.isTrue(metered.every(({ outcome }) => outcome === "success"))
  })

  it("takes the requests of other operations", async () => {
    const input = ["a", "b"].map((text) => ({ model: "local-embedding", input: text }))
    const batch = await ended((await create(input, "/v1/embeddings")).id)
    assert.deepInclude(batch.request_counts, { completed: 2, failed: 0 })
    assert.isUndefined(batch.error_file_id ?? undefined)
    const [first] = await linesIn(batch.output_file_id)
    assert.strictEqual(first?.response?.body["object"], "list")
  })

  it("fails if its file has requests that do not belong into it", async () => {
    const requests = [ask("a"), { ...ask("b"), stream: true }]
    const streamed = await ended((await create(requests)).id)
    assert.strictEqual(streamed.status, "failed")
    assert.deepInclude(streamed.errors?.data?.[0], { line: 2, param: "body.stream" })
    const other = await ended((await create([ask("a")], chat, "/v1/completions")).id)
    assert.deepInclude(other.errors?.data?.[0], { line: 1, param: "url", code: "mismatched_endpoint" })
  })

  it("is refused at once if its fields are wrong", async () => {
    const { id } = await upload([ask("a")])
    const make = (fields: object) =>
      errorOf(
        client().batches.create({
          input_file_id: id,
          endpoint: chat,
          completion_window: "24h",
          ...fields
        })
      )
    assert.deepInclude(await make({ endpoint: "/v1/audio/speech" }), { status: 400, param: "endpoint" })
    const long = await make({ endpoint: `/v1beta/models/${"m".repeat(500)}:generateContent` })
    assert.deepInclude(long, { status: 400, param: "endpoint" })
    assert.include(long.message, "512")
    assert.deepInclude(await make({ completion_window: "1h" }), { status: 400, param: "completion_window" })
    assert.deepInclude(await make({ input_file_id: "file-none" }), { status: 404, param: "input_file_id" })
    assert.deepInclude(await make({ metadata: { a: 1 } }), { status: 400, param: "metadata.a" })
    assert.deepInclude(await make({ output_expires_after: {} }), { status: 400, param: "output_expires_after" })
    assert.deepInclude(await errorOf(get("batch_none")), { status: 404 })
  })

  it("is created once by requests with the same idempotency key", async () => {
    const input_file_id = (await upload([ask("once")])).id
    const make = async (purpose = "test") => {
      const fields = { input_file_id, endpoint: chat, completion_window: "24h", metadata: { purpose } } as const
      const options = { headers: { "idempotency-key": "one-batch" } }
      const { data, response } = await client().batches.create(fields, options).withResponse()
      return { data, replayed: response.headers.get("idempotency-replayed") }
    }
    const [first, joined] = await Promise.all([make(), make()])
    assert.deepStrictEqual(joined.data, first.data)
    await ended(first.data.id)
    await client().files.delete(input_file_id)
    assert.deepStrictEqual(await make(), { data: first.data, replayed: "true" })
    assert.deepInclude(await errorOf(make("another")), { status: 422, code: "idempotency_key_reused" })
  })

  it("stops when it is cancelled, and keeps what is finished", async () => {
    shared().provider.behave({ kind: "silent" }, { model: "upstream-model" })
    // fewer than the worker has slots: a line that returns to the queue must find one
    const created = await create(
      Array.from({ length: 15 }, (_, at) => ask(at < 5 ? `now ${at}` : "x", at < 5 ? "plain-openai" : "on-openai"))
    )
    await eventually(() => get(created.id), ({ request_counts: counts }) => counts?.completed === 5)
    const cancelling = await client().batches.cancel(created.id)
    assert.include(["cancelling", "cancelled"], cancelling.status)
    const batch = await ended(created.id)
    shared().provider.behave({ kind: "answer" }, { model: "upstream-model" })
    assert.deepInclude(batch, { status: "cancelled", request_counts: { total: 15, completed: 5, failed: 10 } })
    assert.lengthOf(await linesIn(batch.output_file_id), 5)
    const errors = await linesIn(batch.error_file_id)
    assert.lengthOf(new Set(errors.map(({ custom_id }) => custom_id)), 10)
    assert.isTrue(errors.every(({ error }) => error?.code === "batch_cancelled"))
    await shared().provider.until(() => shared().provider.open === 0)
  })

  it("is listed, the latest first", async () => {
    const ids = []
    for (const text of ["a", "b", "c"]) ids.push((await create([ask(text)])).id)
    const found = []
    for await (const { id } of client().batches.list({ limit: 2 })) found.push(id)
    assert.deepStrictEqual(found.slice(0, 3), ids.toReversed())
  })
})
