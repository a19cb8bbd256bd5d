/** `/v1/files` with OpenAI's client, and what clients do wrong. */
import { assert, describe, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { randomUUID } from "node:crypto"
import { request } from "node:http"
import OpenAI, { toFile } from "openai"
import { stores, storeStream } from "../../../../shared/nats/Storage.ts"
import { eventually } from "../../../fixture/general/Eventually.ts"
import { sharedGateway } from "../../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({
  workers: 0,
  environment: { GATEWAY_FILES_MIB: "10" }
})
const client = (key = shared().key) => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: key, maxRetries: 0 })

const line = (id: number | string, text = "") =>
  JSON.stringify({ custom_id: String(id), method: "POST", url: "/v1/embeddings", body: { text } }) + "\n"
const lines = (count: number) => Array.from({ length: count }, (_, at) => line(at)).join("")

const upload = async (content: string, name = "requests.jsonl") =>
  client().files.create({ file: await toFile(Buffer.from(content), name), purpose: "batch" })

const errorOf = async (promise: Promise<unknown>) => {
  const error = await promise.then(() => assert.fail("no error"), (error: unknown) => error)
  assert.instanceOf(error, OpenAI.APIError)
  const { code, message, param, status } = error
  return { status, param, code, message }
}

/** The number of pages of all files. */
const messages = async () => {
  const connection = await connect({ servers: shared().nats.url })
  try {
    const manager = await jetstreamManager(connection)
    const { state } = await manager.streams.info(storeStream(stores.clientFiles), { subjects_filter: "$O.*.C.>" })
    return Object.values(state.subjects ?? {}).reduce((sum, count) => sum + count, 0)
  } finally {
    await connection.close()
  }
}

/** Sends a form of these parts. */
const post = (
  parts: ReadonlyArray<readonly [name: string, value: string | Blob]>,
  headers: Record<string, string> = {}
) => {
  const body = new FormData()
  for (const [name, value] of parts) {
    if (typeof value === "string") body.append(name, value)
    else body.append(name, value, "a.jsonl")
  }
  return fetch(`${shared().url}/v1/files`, {
    method: "POST",
    headers: { authorization: `Bearer ${shared().key}`, ...headers },
    body
  })
}

/** Begins an upload with a file of this content, without the end of the form. */
const begin = (content: string | Uint8Array) => {
  const boundary = randomUUID()
  const form = request(`${shared().url}/v1/files`, {
    method: "POST",
    headers: { authorization: `Bearer ${shared().key}`, "content-type": `multipart/form-data; boundary=${boundary}` }
  })
  form.on("error", () => undefined)
  const partOf = (about: string) => `--${boundary}\r\ncontent-disposition: form-data; ${about}\r\n\r\n`
  form.write(partOf("name=\"file\"; filename=\"a.jsonl\""))
  form.write(content)
  return { form, end: `\r\n${partOf("name=\"purpose\"")}batch\r\n--${boundary}--\r\n` }
}

const fieldOf = async (response: Response) => {
  const { error } = await response.json() as { error: { param: string; message: string } }
  return [response.status, error.param, error.message] as const
}

describe("files", () => {
  it("are created, got, listed, downloaded and deleted", async () => {
    const content = lines(3_000)
    const file = await upload(content)
    assert.match(file.id, /^file-[0-9a-f]{32}$/)
    assert.deepInclude(file, {
      object: "file",
      bytes: Buffer.byteLength(content),
      filename: "requests.jsonl",
      purpose: "batch",
      status: "processed",
      expires_at: file.created_at + 30 * 24 * 60 * 60
    })
    assert.deepStrictEqual({ ...await client().files.retrieve(file.id) }, { ...file })
    assert.strictEqual(await (await client().files.content(file.id)).text(), content)
    const part = await client().files.content(file.id, { headers: { range: "bytes=200000-200009" } })
    assert.deepStrictEqual([part.status, await part.text()], [206, content.slice(200_000, 200_010)])
    const second = await upload(line(1))
    const listed: Array<string> = []
    for await (const { id } of client().files.list({ limit: 1 })) listed.push(id)
    assert.deepStrictEqual(listed, [second.id, file.id])
    assert.deepStrictEqual({ ...await client().files.delete(file.id) }, { id: file.id, object: "file", deleted: true })
    await client().files.delete(second.id)
    assert.deepInclude(await errorOf(client().files.retrieve(file.id)), {
      status: 404,
      param: "file_id",
      code: "not_found"
    })
  })

  it("keep names in Unicode, without a half of a character", async () => {
    const file = await upload(line(1), `${"🐈".repeat(200)}.jsonl`)
    assert.strictEqual(file.filename, `${"🐈".repeat(127)}\u{fffd}`)
    await client().files.delete(file.id)
  })

  it("belong to the key's owner", async () => {
    const file = await upload(line(1))
    const stranger = client((await shared().createKeyWith({})).key)
    for (
      const act of [
        () => stranger.files.retrieve(file.id),
        () => stranger.files.content(file.id),
        () => stranger.files.delete(file.id)
      ]
    ) assert.deepInclude(await errorOf(act()), { status: 404, param: "file_id" })
    assert.deepStrictEqual((await stranger.files.list()).data, [])
    assert.strictEqual((await client().files.retrieve(file.id)).id, file.id)
    await client().files.delete(file.id)
  })

  it("are refused with the line or the field that is wrong, in any order of the form", async () => {
    assert.deepInclude(await errorOf(upload(`${line(1)}{}\n`)), { status: 400, param: "file", code: "invalid_file" })
    const file = new Blob([line(1)])
    const cases: ReadonlyArray<readonly [Parameters<typeof post>[0], number, string | null, RegExp]> = [
      [[["purpose", "batch"], ["file", new Blob([line(1), line(1)])]], 400, "file", /Line 2 .*`custom_id`/],
      [[["purpose", "batch"], ["file", new Blob([])]], 400, "file", /no lines/],
      [[["purpose", "assistants"], ["file", file]], 400, "purpose", /'batch'/],
      [[["file", file], ["purpose", "assistants"]], 400, "purpose", /'batch'/],
      [[["file", new Blob(["%PDF"])], ["purpose", "user_data"]], 400, "purpose", /'batch'/],
      [[["file", file]], 400, "purpose", /required/],
      [[["purpose", "batch"]], 400, "file", /required/],
      [[["purpose", "batch"], ["data", file]], 400, "data", /`file`/],
      [[["purpose", "batch"], ["file", file], ["file", file]], 400, "file", /only file/],
      [[["purpose", "batch"], ["file", line(1)]], 400, "file", /filename/],
      [[["purpose", "batch"], ["file", lines(100)]], 400, null, /larger than 4096 bytes.*filename/],
      [Array.from({ length: 17 }, () => ["purpose", "batch"] as const), 400, null, /more than 16 parts/],
      [[["purpose", "batch"], ["expires_after[seconds]", "3600"]], 400, "expires_after[seconds]", /not supported/]
    ]
    for (const [parts, status, param, message] of cases) {
      const found = await fieldOf(await post(parts))
      assert.deepStrictEqual(found.slice(0, 2), [status, param], found[2])
      assert.match(found[2], message)
    }
    const plain = await post([], { "content-type": "application/json" })
    assert.strictEqual((await fieldOf(plain))[0], 400)
    assert.deepStrictEqual((await client().files.list()).data, [])
  })

  it("are stored once for uploads with the same idempotency key, until they are deleted", async () => {
    const { key } = await shared().createKeyWith({})
    const once = async (content: string) => {
      const file = await toFile(Buffer.from(content), "once.jsonl")
      const options = { headers: { "idempotency-key": "one-file" } }
      const { data, response } = await client(key).files.create({ file, purpose: "batch" }, options).withResponse()
      return { data, replayed: response.headers.get("idempotency-replayed") }
    }
    const count = async () => (await client(key).files.list()).data.length
    const [first, joined] = await Promise.all([once(lines(3)), once(lines(3))])
    assert.deepStrictEqual(joined.data, first.data)
    assert.deepStrictEqual(await once(lines(3)), { data: first.data, replayed: "true" })
    assert.deepInclude(await errorOf(once(lines(4))), { status: 422, code: "idempotency_key_reused" })
    assert.strictEqual(await count(), 1)
    await client(key).files.delete(first.data.id)
    const next = await once(lines(4))
    assert.notStrictEqual(next.data.id, first.data.id)
    assert.isNull(next.replayed)
  })

  it("count as requests of the key", async () => {
    const limited = client((await shared().createKeyWith({ requestsPerMinute: 1 })).key)
    const create = async () =>
      limited.files.create({ file: await toFile(Buffer.from(line(1)), "a.jsonl"), purpose: "batch" })
    await create()
    assert.deepInclude(await errorOf(create()), { status: 429, code: "rate_limit_exceeded" })
  })

  it("leave nothing behind when the client leaves", async () => {
    const before = await messages()
    const { form } = begin(lines(20_000))
    await eventually(messages, (count) => count > before + 5)
    form.destroy()
    await eventually(messages, (count) => count === before)
  })

  it("are refused beyond the quota", async () => {
    const { key } = await shared().createKeyWith({})
    const content = Array.from({ length: 700 }, (_, at) => line(at, "x".repeat(9_900))).join("")
    const create = async () =>
      client(key).files.create({ file: await toFile(Buffer.from(content), "large.jsonl"), purpose: "batch" })
    await create()
    const refused = await errorOf(create())
    assert.deepInclude(refused, { status: 413, code: "file_quota_exceeded" })
    assert.match(refused.message, /GATEWAY_FILES_MIB/)
  })
})
