/**
 * A provider that costs next to nothing, so that what is measured is the gateway: `POST /v1/chat/completions` answers a
 * fixed completion of about 2 KB, or 50 streamed chunks of about 200 bytes with no pause between them.
 */
import { createServer } from "node:http"

const chunkCount = 50
const usage = { prompt_tokens: 12, completion_tokens: chunkCount, total_tokens: 12 + chunkCount }
const common = { id: "chatcmpl-bench", created: 1_700_000_000, model: "bench" }

const completion = Buffer.from(JSON.stringify({
  ...common,
  object: "chat.completion",
  choices: [{ index: 0, message: { role: "assistant", content: "lorem ipsum ".repeat(145) }, finish_reason: "stop" }],
  usage
}))

const event = (value: unknown): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`)
const chunk = (delta: object, finish_reason: string | null): Buffer =>
  event({ ...common, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })

const chunks = Array.from({ length: chunkCount }, (_, index) =>
  index === chunkCount - 1
    ? chunk({}, "stop")
    : chunk({ role: "assistant", content: "lorem ipsum dolor sit amet, " }, null))
const usageChunk = event({ ...common, object: "chat.completion.chunk", choices: [], usage })
const done = Buffer.from("data: [DONE]\n\n")

createServer((request, response) => {
  const parts: Array<Buffer> = []
  request.on("data", (part: Buffer) => parts.push(part))
  request.on("end", () => {
    // The flags are looked for as text: parsing is not what is measured here.
    const body = Buffer.concat(parts)
    if (/"stream":\s*true/.test(body.toString("latin1"))) {
      response.writeHead(200, { "content-type": "text/event-stream" })
      for (const one of chunks) response.write(one)
      if (body.includes("\"include_usage\"")) response.write(usageChunk)
      response.end(done)
    } else {
      response.writeHead(200, { "content-type": "application/json", "content-length": completion.length })
      response.end(completion)
    }
  })
}).listen(Number(process.env["PORT"] ?? 0), "127.0.0.1")
