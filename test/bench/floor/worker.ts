/**
 * The worker of the floor: takes requests from a queue group, posts the body to the provider and returns the bytes it reads,
 * one frame per turn of the event loop.
 */
import { connect } from "@nats-io/transport-node"
import { Pool } from "undici"
import { ends, openingOf, opens } from "./Frame.ts"

const provider = new Pool(process.env["PROVIDER_URL"] ?? "http://127.0.0.1:8080", { pipelining: 1 })
const connection = await connect({ servers: process.env["NATS_URL"] ?? "nats://127.0.0.1:4222" })

/** A longer frame is sent before the turn ends. This is half of the largest NATS message. */
const longFrame = 512 * 1024

/** An answer on its way back, with the bytes read since the last flush. */
class Answer {
  readonly #reply: string
  #flags = 0
  #parts: Array<Buffer> = []
  #length = 0
  queued = false

  constructor(reply: string) {
    this.#reply = reply
  }

  add(flags: number, part?: Buffer): void {
    this.#flags |= flags
    if (part !== undefined) {
      this.#parts.push(part)
      this.#length += part.length
    }
    if (this.#length > longFrame) this.#publish()
    if (this.queued) return
    this.queued = true
    if (outbox.push(this) === 1) setImmediate(flush)
  }

  send(): void {
    this.queued = false
    if (this.#flags !== 0 || this.#length > 0) this.#publish()
  }

  #publish(): void {
    connection.publish(this.#reply, Buffer.concat([Buffer.of(this.#flags), ...this.#parts]))
    this.#flags = 0
    this.#parts = []
    this.#length = 0
  }
}

let outbox: Array<Answer> = []
const flush = () => {
  const answers = outbox
  outbox = []
  for (const answer of answers) answer.send()
}

const subject = "floor.job."

connection.subscribe(`${subject}*`, {
  queue: "floor",
  callback: (_error, message) => {
    if (message.reply === undefined) return
    const answer = new Answer(message.reply)
    let open = false
    provider.dispatch({
      method: "POST",
      path: message.subject.slice(subject.length),
      headers: ["content-type", "application/json"],
      body: message.data
    }, {
      onRequestStart: () => {},
      onResponseStart: (_controller, status, headers) => {
        open = true
        answer.add(opens, openingOf(status, String(headers["content-type"] ?? "application/json")))
      },
      onResponseData: (_controller, chunk) => answer.add(0, chunk),
      onResponseEnd: () => answer.add(ends),
      onResponseError: () => {
        if (open) answer.add(ends)
        else answer.add(opens | ends, openingOf(502, "text/plain"))
      }
    })
  }
})
