/** The client protocol of NATS: reads what a client sends, and writes what a server answers. */

/** A message of a client or of the server itself. */
export interface Message {
  readonly subject: string
  readonly reply: string
  /** `NATS/1.0` and header lines, or empty. */
  readonly headers: Buffer
  readonly payload: Buffer
}

export type Operation =
  | { readonly type: "connect" | "ping" | "pong" }
  | { readonly type: "subscribe"; readonly subject: string; readonly sid: string }
  | { readonly type: "unsubscribe"; readonly sid: string; readonly most: number | undefined }
  | { readonly type: "publish"; readonly message: Message }

const lineEnd = Buffer.from("\r\n")
const none = Buffer.alloc(0)

/** Reads operations from chunks that may end anywhere. */
export class Reader {
  #bytes: Buffer = none

  /** The operations that are complete with this chunk. */
  read(chunk: Buffer): ReadonlyArray<Operation> {
    const operations: Array<Operation> = []
    this.#bytes = this.#bytes.length === 0 ? chunk : Buffer.concat([this.#bytes, chunk])
    for (;;) {
      const end = this.#bytes.indexOf(lineEnd)
      if (end === -1) return operations
      const words = this.#bytes.toString("latin1", 0, end).split(" ")
      const after = end + lineEnd.length
      const operation = words[0]?.toUpperCase()
      if (operation === "PUB" || operation === "HPUB") {
        const size = Number(words.at(-1))
        if (this.#bytes.length < after + size + lineEnd.length) return operations
        const headerSize = operation === "HPUB" ? Number(words.at(-2)) : 0
        const hasReply = words.length === (operation === "HPUB" ? 5 : 4)
        const body = this.#bytes.subarray(after, after + size)
        this.#bytes = this.#bytes.subarray(after + size + lineEnd.length)
        operations.push({
          type: "publish",
          message: {
            subject: words[1] ?? "",
            reply: hasReply ? words[2] ?? "" : "",
            headers: body.subarray(0, headerSize),
            payload: body.subarray(headerSize)
          }
        })
        continue
      }
      this.#bytes = this.#bytes.subarray(after)
      if (operation === "PING") operations.push({ type: "ping" })
      else if (operation === "PONG") operations.push({ type: "pong" })
      else if (operation === "CONNECT") operations.push({ type: "connect" })
      else if (operation === "SUB") {
        operations.push({ type: "subscribe", subject: words[1] ?? "", sid: words.at(-1) ?? "" })
      } else if (operation === "UNSUB") {
        const most = words[2] === undefined ? undefined : Number(words[2])
        operations.push({ type: "unsubscribe", sid: words[1] ?? "", most })
      } else throw new Error(`a client sent ${words.join(" ")}`)
    }
  }
}

export const pong = Buffer.from("PONG\r\n")

export const info = (server: string, version: string): Buffer =>
  Buffer.from(
    `INFO ${
      JSON.stringify({
        server_id: server,
        server_name: server,
        version,
        proto: 1,
        headers: true,
        jetstream: true,
        max_payload: 1_048_576
      })
    } \r\n`
  )

/** A message to the subscription `sid`. */
export const deliver = (sid: string, { headers, payload, reply, subject }: Message): Buffer => {
  const to = reply === "" ? `${subject} ${sid}` : `${subject} ${sid} ${reply}`
  const head = headers.length === 0
    ? `MSG ${to} ${payload.length}\r\n`
    : `HMSG ${to} ${headers.length} ${headers.length + payload.length}\r\n`
  return Buffer.concat([Buffer.from(head), headers, payload, lineEnd])
}

/** A message of the server with a status, such as 503. */
export const status = (
  subject: string,
  code: number,
  text: string,
  fields: Readonly<Record<string, string>> = {}
): Message => {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`).join("")
  return {
    subject,
    reply: "",
    headers: Buffer.from(`NATS/1.0 ${code}${text === "" ? "" : ` ${text}`}\r\n${lines}\r\n`),
    payload: none
  }
}

export const json = (subject: string, value: unknown): Message => ({
  subject,
  reply: "",
  headers: none,
  payload: Buffer.from(JSON.stringify(value))
})

/** A header's value. */
export const headerOf = ({ headers }: Message, name: string): string | undefined => {
  for (const line of headers.toString("latin1").split("\r\n")) {
    if (line.startsWith(`${name}: `)) return line.slice(name.length + 2)
  }
  return undefined
}

/** Whether a subject matches a pattern with `*` and `>`, given as tokens. */
export const matches = (pattern: ReadonlyArray<string>, subject: ReadonlyArray<string>): boolean => {
  for (const [at, token] of pattern.entries()) {
    if (token === ">") return subject.length > at
    if (at >= subject.length || (token !== "*" && token !== subject[at])) return false
  }
  return pattern.length === subject.length
}
