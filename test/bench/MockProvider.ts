/**
 * A provider that uses almost no CPU, so that the benchmark measures the gateway. The model selects the answer: `vectors-<n>`
 * returns that many embeddings, `picture` a picture of 4 MB, any other a completion of about 2 KB, or 50 streamed chunks of
 * about 200 bytes, at once or, for `paced`, one every 5 ms. The models of `translation` stream in the format of any chat API.
 */
import type { ServerResponse } from "node:http"
import { createServer } from "node:http"
import { chunkCount, chunkMillis } from "./Rows.ts"
import { streamOf } from "./Streams.ts"

const usage = { prompt_tokens: 12, completion_tokens: chunkCount, total_tokens: 12 + chunkCount }
const common = { id: "chatcmpl-bench", created: 1_700_000_000, model: "bench" }
const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

const completion = json({
  ...common,
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", content: "lorem ipsum ".repeat(145) }, finish_reason: "stop" }],
  usage
})

/** This many vectors of 1,536 numbers each, encoded as the official clients request. */
const vectors = (count: number): Buffer =>
  json({
    object: "list",
    data: Array.from({ length: count }, (_, index) => ({
      object: "embedding",
      index,
      embedding: Buffer.alloc(1_536 * 4, 1).toString("base64")
    })),
    model: "bench",
    usage: { prompt_tokens: 4 * count, total_tokens: 4 * count }
  })

/** 3 MB, which are 4 MB in base64. */
const picture = json({
  created: common.created,
  data: [{ b64_json: Buffer.alloc(3 * 1024 ** 2, 1).toString("base64") }]
})

const whole = new Map([["vectors-1", vectors(1)], ["vectors-128", vectors(128)], ["picture", picture]])

const event = (value: unknown): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`)
const chunk = (delta: object, finish_reason: string | null): Buffer =>
  event({ ...common, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })

const chunks = Array.from({ length: chunkCount }, (_, index) =>
  index === chunkCount - 1
    ? chunk({}, "stop")
    : chunk({ role: "assistant", content: "lorem ipsum dolor sit amet, " }, null))
const usageChunk = event({ ...common, object: "chat.completion.chunk", choices: [], usage })
const done = Buffer.from("data: [DONE]\n\n")

const pace = (response: ServerResponse, events: ReadonlyArray<Buffer>) => {
  let next = 0
  const timer = setInterval(() => {
    response.write(events[next++])
    if (next < events.length) return
    clearInterval(timer)
    response.end()
  }, chunkMillis)
  response.once("close", () => clearInterval(timer))
}

const stream = (response: ServerResponse, events: ReadonlyArray<Buffer>) => {
  for (const one of events) response.write(one)
  response.end()
}

const chatStream = { withUsage: [...chunks, usageChunk, done], withoutUsage: [...chunks, done] }

// keeps connections open, as providers do; Node's default of 5 s would favour gateways in constant use
createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  const parts: Array<Buffer> = []
  request.on("data", (part: Buffer) => parts.push(part))
  request.on("end", () => {
    // Searches the text for the fields it needs, because parsing would cost CPU.
    const body = Buffer.concat(parts).toString("latin1")
    // Gemini's API has both in the path
    const inPath = /\/models\/([^:]*):stream/.exec(request.url ?? "")?.[1]
    const model = inPath ?? /"model":\s*"([^"]*)"/.exec(body)?.[1] ?? ""
    if (inPath !== undefined || /"stream":\s*true/.test(body)) {
      response.writeHead(200, { "content-type": "text/event-stream" })
      const { events, isPaced } = streamOf(model) ?? {
        events: chatStream[body.includes("\"include_usage\"") ? "withUsage" : "withoutUsage"],
        isPaced: model === "paced"
      }
      const send = isPaced ? pace : stream
      send(response, events)
    } else {
      const answer = whole.get(model) ?? completion
      response.writeHead(200, { "content-type": "application/json", "content-length": answer.length })
      response.end(answer)
    }
  })
}).listen(Number(process.env["PORT"] ?? 0), "127.0.0.1")
