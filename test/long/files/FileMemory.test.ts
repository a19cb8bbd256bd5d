/** Files of many megabytes pass through the ingress without taking its memory. */
import { assert, it } from "@effect/vitest"
import { jetstreamManager } from "@nats-io/jetstream"
import { connect } from "@nats-io/transport-node"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { type IncomingMessage, request } from "node:http"
import { json } from "node:stream/consumers"
import OpenAI, { toFile } from "openai"
import { chunkBytes } from "../../../shared/nats/ObjectStore.ts"
import { stores, storeStream } from "../../../shared/nats/Storage.ts"
import { eventually } from "../../fixture/general/Eventually.ts"
import { inspect, inspectable } from "../../fixture/gateway/Inspector.ts"
import { sharedProcesses } from "../../fixture/gateway/SharedGateway.ts"

/** The size of the large file: `FILES_MB=200` is the largest, and takes a minute. */
const megabytes = Number(process.env["FILES_MB"] ?? 60)

const shared = sharedProcesses({
  workers: 0,
  environment: { ...inspectable, GATEWAY_FILES_MIB: String(Math.ceil(2.5 * megabytes)) }
})
const client = () => new OpenAI({ baseURL: `${shared().url}/v1`, apiKey: shared().key, maxRetries: 0 })

const line = (id: number | string, text = "") =>
  JSON.stringify({ custom_id: String(id), method: "POST", url: "/v1/embeddings", body: { text } }) + "\n"
const lines = (count: number) => Array.from({ length: count }, (_, at) => line(at)).join("")

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

it(
  "files hardly take memory of the ingress, however large, and are refused beyond the quota",
  { timeout: 300_000 },
  async () => {
    const content = Buffer.from(
      Array.from({ length: 100 * megabytes }, (_, at) => line(at, "x".repeat(9_900))).join("")
    )
    const create = async () => client().files.create({ file: await toFile(content, "large.jsonl"), purpose: "batch" })
    // loads the code of both directions
    const few = await toFile(Buffer.from(lines(10_000)), "small.jsonl")
    const small = await client().files.create({ file: few, purpose: "batch" })
    await (await client().files.content(small.id)).text()
    // what is reachable: how much garbage V8 leaves varies too much
    const memory = async () => (await inspect(shared().ingress)).heapMb
    const before = await memory()
    const isLittle = async (when: string) => {
      const grown = await memory() - before
      assert.isBelow(grown, megabytes / 4, `${grown} MB ${when} of ${content.length / 1e6} MB`)
    }
    const stored = await messages()
    const { end, form } = begin(content)
    await eventually(messages, (count) => count > stored + 0.9 * content.length / chunkBytes)
    await isLittle("in the upload")
    form.end(end)
    const [answer] = await once(form, "response") as [IncomingMessage]
    const { id } = await json(answer) as { readonly id: string }
    const downloaded: Array<Uint8Array> = []
    const { body } = await client().files.content(id)
    const half = content.length / 2
    let received = 0
    for await (const piece of body as unknown as AsyncIterable<Uint8Array>) {
      downloaded.push(piece)
      if (received < half && received + piece.length >= half) await isLittle("in the download")
      received += piece.length
    }
    assert.isTrue(Buffer.concat(downloaded).equals(content))
    await create()
    const refused = await errorOf(create())
    assert.deepInclude(refused, { status: 413, code: "file_quota_exceeded" })
    assert.match(refused.message, /GATEWAY_FILES_MIB/)
  }
)
