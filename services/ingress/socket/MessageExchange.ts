/** Presents a message on a WebSocket to an operation as a request and a response over HTTP. */
import { Predicate, Result } from "effect"
import * as Sse from "effect/encoding/Sse"
import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import { Readable, Writable } from "node:stream"
import type { Incoming, Outgoing } from "../exchange/Exchange.ts"

/** A request with the headers of the opening request, except for those that concern only the upgrade. */
export class MessageRequest extends Readable implements Incoming {
  readonly method = "POST"
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly complete = true
  readonly socket: Incoming["socket"]

  constructor({ headers, socket }: IncomingMessage, url: string, body: Uint8Array) {
    super({ read: () => undefined })
    this.url = url
    const { "content-encoding": _coding, "idempotency-key": _key, prefer: _preference, ...shared } = headers
    this.headers = shared
    this.socket = socket
    this.push(body)
    this.push(null)
  }
}

/** An error of the operation, as it would be in a response of this status. */
export interface Refusal {
  readonly status: number
  readonly error: unknown
  /** How long to wait before the next attempt. */
  readonly headers: Readonly<Record<string, string>>
}

export interface MessageListener {
  /** An event of the answer; calls `sent` when it has been sent. */
  readonly onEvent: (name: string, data: string, sent: () => void) => void
  readonly onRefusal: (refusal: Refusal) => void
}

/** The answer cannot be completed. */
const broken: Refusal = {
  status: 502,
  error: { type: "upstream_error", code: "answer_lost", message: "The answer broke off", param: null },
  headers: {}
}

const isWait = (name: string): boolean => name.startsWith("retry-after") || name === "x-should-retry"

/** Larger than any event. The last event of a stream contains the whole answer. */
const maxEventSize = 64 * 1024 * 1024

/** A response whose events go to a listener. */
export class MessageResponse extends Writable implements Outgoing {
  headersSent = false
  readonly #listener: MessageListener
  readonly #text = new TextDecoder()
  readonly #events: Array<Sse.Event> = []
  readonly #parser = Sse.makeParser((event) => {
    if (event._tag === "Event") this.#events.push(event)
  }, { maxEventSize })
  readonly #whole: Array<Uint8Array> = []
  #status = 0
  readonly #headers: Record<string, string> = {}

  constructor(listener: MessageListener) {
    super({ decodeStrings: true })
    this.#listener = listener
  }

  /** Does nothing: only HTTP clients wait for permission to send their body. */
  writeContinue(): void {}

  writeHead(status: number, headers: Array<string>): this {
    this.headersSent = true
    this.#status = status
    for (let at = 0; at < headers.length; at += 2) this.#headers[headers[at] ?? ""] = headers[at + 1] ?? ""
    return this
  }

  override _write(chunk: Uint8Array, _encoding: BufferEncoding, done: () => void): void {
    if (!this.#isStream) {
      this.#whole.push(chunk)
      return done()
    }
    const tooLarge = this.#parser.feed(this.#text.decode(chunk, { stream: true }))
    if (tooLarge !== undefined) return void this.destroy()
    const events = this.#events.splice(0)
    let unsent = events.length
    if (unsent === 0) return done()
    for (const { data, event } of events) this.#listener.onEvent(event, data, () => --unsent === 0 ? done() : undefined)
  }

  override _final(done: () => void): void {
    if (!this.#isStream) this.#listener.onRefusal(this.#refusal())
    done()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    // after the end, a response is destroyed as well
    if (!this.writableEnded) this.#listener.onRefusal(broken)
    done(error)
  }

  get #isStream(): boolean {
    return this.#headers["content-type"]?.startsWith("text/event-stream") === true
  }

  #refusal(): Refusal {
    const body = Result.getOrUndefined(Result.try((): unknown => JSON.parse(Buffer.concat(this.#whole).toString())))
    // an answer that is no stream cannot be sent as events
    if (this.#status < 400 || !Predicate.isReadonlyObject(body)) return broken
    const headers = Object.fromEntries(Object.entries(this.#headers).filter(([name]) => isWait(name)))
    return { status: this.#status, error: body["error"], headers }
  }
}
