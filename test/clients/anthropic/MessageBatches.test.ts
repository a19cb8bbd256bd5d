/** Batches of messages with Anthropic's client. */
import { assert, describe, it } from "@effect/vitest"
import Anthropic from "@anthropic-ai/sdk"
import { chatProviders } from "../../fixture/gateway/ChatProviders.ts"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"
import { eventually } from "../../fixture/general/Eventually.ts"

const shared = sharedGateway({ ...chatProviders(), services: ["batches"], environment: { WORKER_TASK_SLOTS: "16" } })
const client = () => new Anthropic({ baseURL: shared().url, apiKey: shared().key, maxRetries: 0 })

type Params = Anthropic.Messages.BatchCreateParams.Request["params"]

const params = (text: string, model = "on-anthropic"): Params => ({
  model,
  max_tokens: 100,
  messages: [{ role: "user", content: text }]
})

const create = (requests: ReadonlyArray<Params>) =>
  client().messages.batches.create({ requests: requests.map((params, at) => ({ custom_id: `m${at}`, params })) })

const ended = (id: string) =>
  eventually(
    () => client().messages.batches.retrieve(id),
    ({ processing_status: status }) => status === "ended"
  )

const resultsOf = async (id: string) => {
  const results = []
  for await (const result of await client().messages.batches.results(id)) results.push(result)
  return results
}

const errorOf = async (promise: Promise<unknown>) => {
  const error = await promise.then(() => assert.fail("no error"), (error: unknown) => error)
  assert.instanceOf(error, Anthropic.APIError)
  return { status: error.status, text: JSON.stringify(error.error) }
}

describe("a batch of messages", () => {
  it("answers each of its requests once", async () => {
    const created = await create([...["a", "b", "c"].map((text) => params(`Say ${text}`)), params("x", "none")])
    assert.deepInclude(created, { type: "message_batch", processing_status: "in_progress", results_url: null })
    assert.match(created.id, /^msgbatch_/)
    const batch = await ended(created.id)
    assert.deepInclude(batch.request_counts, { processing: 0, succeeded: 3, errored: 1, canceled: 0, expired: 0 })
    const results = await resultsOf(created.id)
    assert.deepStrictEqual(results.map(({ custom_id }) => custom_id).toSorted(), ["m0", "m1", "m2", "m3"])
    for (const { custom_id, result } of results) {
      if (custom_id === "m3") {
        assert.strictEqual(result.type, "errored")
        assert.include(JSON.stringify(result), "not_found_error")
      } else {
        assert.strictEqual(result.type, "succeeded")
        assert.include(JSON.stringify(result), "Say ")
      }
    }
  })

  it("is seen by OpenAI's clients, too, and is listed and deleted", async () => {
    const { id } = await create([params("a")])
    const later = await create([params("b")])
    const seen = await fetch(`${shared().url}/v1/batches/${id.replace("msgbatch", "batch")}`, {
      headers: { authorization: `Bearer ${shared().key}` }
    })
    assert.deepInclude(await seen.json(), { endpoint: "/v1/messages" })
    const page = await client().messages.batches.list({ limit: 1, after_id: later.id })
    assert.deepStrictEqual(page.data.map((batch) => batch.id), [id])
    const before = await client().messages.batches.list({ limit: 1, before_id: id })
    assert.deepStrictEqual(before.data.map((batch) => batch.id), [later.id])
    await ended(id)
    assert.deepInclude(await client().messages.batches.delete(id), { id, type: "message_batch_deleted" })
    assert.deepInclude(await errorOf(client().messages.batches.retrieve(id)), { status: 404 })
  })

  it("is created once by requests with the same idempotency key, until it is deleted", async () => {
    const files = async () => {
      const answer = await fetch(`${shared().url}/v1/files?purpose=batch&limit=100`, {
        headers: { authorization: `Bearer ${shared().key}` }
      })
      return (await answer.json() as { readonly data: ReadonlyArray<unknown> }).data.length
    }
    const before = await files()
    const make = (text = "a") =>
      client().messages.batches.create({ requests: [{ custom_id: "m0", params: params(text) }] }, {
        headers: { "idempotency-key": "one-batch" }
      })
    const [first, joined] = await Promise.all([make(), make()])
    assert.deepStrictEqual(joined, first)
    assert.strictEqual(await files(), before + 1)
    await ended(first.id)
    assert.deepStrictEqual(await make(), first)
    assert.deepInclude(await errorOf(make("b")), { status: 422 })
    assert.strictEqual(await files(), before + 1)
    await client().messages.batches.delete(first.id)
    const next = await make("b")
    assert.notStrictEqual(next.id, first.id)
    await ended(next.id)
  })

  it("is deleted without the file that the client uploaded for it", async () => {
    const headers = { authorization: `Bearer ${shared().key}` }
    const form = new FormData()
    form.append("purpose", "batch")
    const line = { custom_id: "a", method: "POST", url: "/v1/messages", body: params("a") }
    form.append("file", new Blob([`${JSON.stringify(line)}\n`]), "requests.jsonl")
    const uploaded = await fetch(`${shared().url}/v1/files`, { method: "POST", headers, body: form })
    const { id: file } = await uploaded.json() as { readonly id: string }
    const created = await fetch(`${shared().url}/v1/batches`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ input_file_id: file, endpoint: "/v1/messages", completion_window: "24h" })
    })
    const { id } = await created.json() as { readonly id: string }
    const name = id.replace("batch", "msgbatch")
    await ended(name)
    await client().messages.batches.delete(name)
    const kept = await fetch(`${shared().url}/v1/files/${file}`, { headers })
    assert.strictEqual(kept.status, 200)
  })

  it("ends early when it is cancelled", async () => {
    shared().provider.behave({ kind: "silent" }, { model: "upstream-model" })
    const { id } = await create([params("a"), params("b")])
    await shared().provider.until(() => shared().provider.open === 2)
    assert.strictEqual((await client().messages.batches.cancel(id)).processing_status, "canceling")
    assert.deepInclude((await ended(id)).request_counts, { succeeded: 0, canceled: 2 })
    shared().provider.behave({ kind: "answer" }, { model: "upstream-model" })
    assert.deepStrictEqual((await resultsOf(id)).map(({ result }) => result.type), ["canceled", "canceled"])
    await shared().provider.until(() => shared().provider.open === 0)
  })

  it("is refused if a request is wrong, and nothing of it is stored", async () => {
    const post = (body: string) =>
      fetch(`${shared().url}/v1/messages/batches`, {
        method: "POST",
        headers: { "x-api-key": shared().key, "anthropic-version": "2023-06-01", "content-type": "application/json" },
        body
      })
    const wrong: Readonly<Record<string, string>> = {
      "{}": "requests",
      "{\"requests\":[]}": "requests",
      "{\"requests\":[1]}": "requests[0]",
      "{\"requests\":[{\"custom_id\":\"a\"}]}": "requests[0].params",
      "{\"requests\":[{\"params\":{}}]}": "requests[0].custom_id",
      "{\"requests\":[{\"custom_id\":\"a\",\"params\":{\"stream\":true}}]}": "requests[0].params.stream",
      "{\"requests\":[{\"custom_id\":\"a\",\"params\":{}}],\"more\":1}": "more",
      "{\"requests\":[{\"custom_id\":\"a\",\"params\":{}}": "JSON"
    }
    for (const [body, text] of Object.entries(wrong)) {
      const answer = await post(body)
      assert.strictEqual(answer.status, 400, body)
      const { error, type } = await answer.json() as { type: string; error: { type: string; message: string } }
      assert.deepInclude({ type, error: error.type }, { type: "error", error: "invalid_request_error" })
      assert.include(error.message, text)
    }
    const tooLong = await fetch(`${shared().url}/v1/messages/batches`, {
      method: "POST",
      headers: { "x-api-key": shared().key, "anthropic-beta": "a".repeat(1_025) },
      body: JSON.stringify({ requests: [{ custom_id: "a", params: params("a") }] })
    })
    assert.strictEqual(tooLong.status, 400)
    assert.include(await tooLong.text(), "anthropic-beta")
    const twice = { custom_id: "a", params: params("a") }
    const duplicate = await post(JSON.stringify({ requests: [twice, twice] }))
    assert.strictEqual(duplicate.status, 400)
    const large = await post(`{"requests":[{"custom_id":"a","params":{"x":"${"x".repeat(33 * 1024 * 1024)}"}}]}`)
    assert.strictEqual(large.status, 413)
    const files = await fetch(`${shared().url}/v1/files`, { headers: { authorization: `Bearer ${shared().key}` } })
    const { data } = await files.json() as { data: ReadonlyArray<{ filename: string; bytes: number }> }
    assert.isBelow(data.reduce((sum, { bytes }) => sum + bytes, 0), 10_000)
  })
})
