/** Many concurrent requests of every operation, to every worker: each client gets its own answer. */
import { otherWorkloads } from "../../fixture/gateway/Gateway.ts"
import { assert, it } from "@effect/vitest"
import sharp from "sharp"
import { sharedGateway } from "../../fixture/gateway/SharedGateway.ts"

const shared = sharedGateway({
  services: otherWorkloads,
  // so many pictures and sentences at once may take longer than the default
  environment: { GATEWAY_QUEUE_TIMEOUT_MS: "120000" }
})

const send = async (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> => {
  const answer = await fetch(`${shared().url}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${shared().key}`, "content-type": "application/json", ...headers },
    body: JSON.stringify(body)
  })
  if (answer.status !== 200) assert.fail(`${path}: ${answer.status} ${await answer.text()}`)
  return answer
}

const text = async (path: string, body: unknown, headers?: Record<string, string>) =>
  (await send(path, body, headers)).text()
const json = async <A>(path: string, body: unknown): Promise<A> => (await send(path, body)).json() as Promise<A>

/** A sentence unique to the request. */
const fact = (index: number) => `The lighthouse number ${index} was built in ${1800 + index}.`
const asking = (index: number) => `${fact(index)} Its keeper kept bees. When was the lighthouse built?`

/** The text of a stream's frames, joined. */
const deltas = (stream: string): string =>
  stream.split("\n\n").filter((frame) => frame.startsWith("data: {")).map((frame) => {
    const { choices } = JSON.parse(frame.slice(6)) as { choices: Array<{ delta: { content?: string } }> }
    return choices[0]?.delta.content ?? ""
  }).join("")

/** The request of each operation, and a check that the answer belongs to it. */
const operations: Record<string, (index: number) => Promise<void>> = {
  "chat completions": async (index) => {
    const messages = [{ role: "user", content: asking(index) }]
    assert.include(await text("/v1/chat/completions", { model: "local-chat", messages }), fact(index))
  },
  "streamed chat completions": async (index) => {
    const messages = [{ role: "user", content: asking(index) }]
    const answer = await text("/v1/chat/completions", { model: "local-chat", messages, stream: true })
    assert.include(deltas(answer), fact(index))
    assert.isTrue(answer.endsWith("data: [DONE]\n\n"))
  },
  "messages": async (index) => {
    const body = { model: "local-chat", max_tokens: 100, messages: [{ role: "user", content: asking(index) }] }
    assert.include(await text("/v1/messages", body, { "vendor-version": "2023-06-01" }), fact(index))
  },
  "completions": async (index) => {
    const prompt = { model: "local-chat", prompt: asking(index), echo: true }
    assert.include(await text("/v1/completions", prompt), fact(index))
  },
  "generateContent": async (index) => {
    const body = { contents: [{ parts: [{ text: asking(index) }] }] }
    assert.include(await text("/v1beta/models/local-chat:generateContent", body), fact(index))
  },
  "compaction": async (index) => {
    const body = { model: "local-chat", input: [{ role: "user", content: fact(index) }] }
    assert.include(await text("/v1/responses/compact", body), fact(index))
  },
  "embeddings": async (index) => {
    const { data } = await json<{ data: Array<{ embedding: Array<number> }> }>("/v1/embeddings", {
      model: "local-embedding",
      input: [fact(index), fact(index)],
      dimensions: 8 + index
    })
    assert.strictEqual(data[0]?.embedding.length, 8 + index)
    assert.deepStrictEqual(data[0]?.embedding, data[1]?.embedding)
  },
  "embeddings of an engine": async (index) => {
    const body = { input: fact(index), dimensions: 8 + index }
    const answer = await json<{ data: Array<{ embedding: Array<number> }> }>(
      "/v1/engines/local-embedding/embeddings",
      body
    )
    assert.strictEqual(answer.data[0]?.embedding.length, 8 + index)
  },
  "rerank": async (index) => {
    const documents = Array.from({ length: 20 }, (_, at) => fact(at))
    const body = { model: "local-rerank", query: `lighthouse number ${index}`, documents, top_n: 1 }
    const { results } = await json<{ results: Array<{ index: number }> }>("/v1/rerank", body)
    assert.deepStrictEqual(results.map((result) => result.index), [index])
  },
  "speech": async (index) => {
    const input = "la ".repeat(index + 1)
    const answer = await send("/v1/audio/speech", {
      model: "local-speech",
      input,
      voice: "nova",
      response_format: "pcm"
    })
    assert.isAbove((await answer.arrayBuffer()).byteLength, 4_800)
  },
  "images": async (index) => {
    const size = `${64 + index}x${128 + index}`
    const { data } = await json<{ data: Array<{ b64_json: string }> }>("/v1/images/generations", {
      model: "local-image",
      prompt: fact(index),
      size
    })
    const { height, width } = await sharp(Buffer.from(data[0]?.b64_json ?? "", "base64")).metadata()
    assert.strictEqual(`${width}x${height}`, size)
  },
  "image edits": async (index) => {
    const grey = { r: index, g: index, b: index }
    const image = await sharp({ create: { width: 64, height: 64, channels: 3, background: grey } }).png().toBuffer()
    const content = [{ image: `data:image/png;base64,${image.toString("base64")}` }, { text: "invert" }]
    const { data } = await json<{ data: Array<{ b64_json: string }> }>("/v1/images/edits", {
      model: "local-image",
      input: { messages: [{ role: "user", content }] }
    })
    const { channels } = await sharp(Buffer.from(data[0]?.b64_json ?? "", "base64")).stats()
    assert.deepStrictEqual(channels.slice(0, 3).map(({ mean }) => Math.round(mean)), Array(3).fill(255 - index))
  },
  "video tasks": async (index) => {
    const body = { model: "local-video", prompt: fact(index), duration: 1, width: 64 + 2 * index, height: 64, fps: 2 }
    const task = await json<{ task_id: string; status: string }>("/v1/video/generations", body)
    const answer = await fetch(`${shared().url}/v1/video/generations/${task.task_id}`, {
      headers: { authorization: `Bearer ${shared().key}` }
    })
    const view = await answer.json() as { task_id: string; metadata?: { width?: number } }
    assert.strictEqual(view.task_id, task.task_id)
    assert.strictEqual(view.metadata?.width ?? body.width, body.width)
  }
}

it("ten concurrent requests of every operation all succeed, each with its own answer", async () => {
  const all = Object.values(operations).flatMap((ask) => Array.from({ length: 10 }, (_, index) => ask(index)))
  await Promise.all(all)
})
