/**
 * The ingress of the floor: a bare HTTP server that sends each body as a core NATS request and relays the reply frames. No
 * authentication, validation, tracing, limits or retries.
 */
import { nuid } from "@nats-io/nats-core"
import { connect } from "@nats-io/transport-node"
import type { ServerResponse } from "node:http"
import { createServer } from "node:http"
import { ends, opens } from "./Frame.ts"

const connection = await connect({ servers: process.env["NATS_URL"] ?? "nats://127.0.0.1:4222" })
const inbox = `floor.reply.${nuid.next()}`
const waiting = new Map<string, ServerResponse>()
let lastId = 0

/** The messages to publish at the end of this turn: request id, path and body. The path is a token of the subject. */
let outbox: Array<readonly [id: string, path: string, body: Buffer]> = []
const flush = () => {
  const requests = outbox
  outbox = []
  for (const [id, path, body] of requests) connection.publish(`floor.job.${path}`, body, { reply: `${inbox}.${id}` })
}

connection.subscribe(`${inbox}.*`, {
  callback: (_error, message) => {
    const id = message.subject.slice(inbox.length + 1)
    const response = waiting.get(id)
    if (response === undefined) return
    const frame = message.data
    // Without a worker, the NATS server itself replies with an empty message.
    if (frame.length === 0) {
      waiting.delete(id)
      response.writeHead(503).end()
      return
    }
    const flags = frame[0]!
    let start = 1
    if ((flags & opens) !== 0) {
      const bodyAt = 4 + frame[3]!
      const contentType = Buffer.from(frame.buffer, frame.byteOffset + 4, frame[3]!).toString("latin1")
      response.writeHead((frame[1]! << 8) | frame[2]!, { "content-type": contentType })
      start = bodyAt
    }
    if ((flags & ends) === 0) {
      if (frame.length > start) response.write(frame.subarray(start))
      return
    }
    waiting.delete(id)
    response.end(frame.subarray(start))
  }
})

createServer((request, response) => {
  const id = (++lastId).toString(36)
  const parts: Array<Buffer> = []
  request.on("data", (part: Buffer) => parts.push(part))
  request.on("end", () => {
    waiting.set(id, response)
    const body = parts.length === 1 ? parts[0]! : Buffer.concat(parts)
    if (outbox.push([id, request.url ?? "/", body]) === 1) setImmediate(flush)
  })
  response.on("close", () => waiting.delete(id))
}).listen(Number(process.env["PORT"] ?? 0), "127.0.0.1")
