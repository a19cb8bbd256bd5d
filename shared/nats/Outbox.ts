/**
 * Collects what a process publishes and sends it once per turn of the event loop.
 *
 * nats-core writes to its socket at every microtask turn, so fibers that run one after another would each pay for a
 * system call of their own, here, in the server and in the receiver. One write per turn is the largest single gain of
 * the whole path.
 */
import type { Msg, MsgHdrs, NatsConnection, PublishOptions } from "@nats-io/nats-core"

/** JetStream stores a message with this id once. */
export const messageIdHeader = "Nats-Msg-Id"

/** Headers that are already text. nats-core asks of headers only that they encode themselves. */
class EncodedHeaders {
  readonly #text: string
  constructor(text: string) {
    this.#text = text
  }
  encode(): Uint8Array {
    return Buffer.from(this.#text, "latin1")
  }
}

/**
 * Header lines for one message. A control character would split a header, and white space around a value would be lost,
 * so whatever is not printable ASCII from end to end is percent-encoded.
 */
export const encodeHeaders = (headers: Record<string, string | number | undefined>): string => {
  let text = "NATS/1.0\r\n"
  for (const name in headers) {
    const value = headers[name]
    if (value === undefined) continue
    text += `${name}: ${typeof value === "number" ? value : escape(value)}\r\n`
  }
  return `${text}\r\n`
}

const escape = (value: string): string =>
  /^(?! )[\x20-\x24\x26-\x7e]*(?<! )$/.test(value) ? value : encodeURIComponent(value.toWellFormed())

/** The reverse of what `encodeHeaders` did to a value; one that it cannot have made is left as it is. */
export const decodeHeader = (value: string): string => {
  if (!value.includes("%")) return value
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

/** What is in no hurry waits for the next send, at most for so many milliseconds. */
const lingerMs = 1

/** How many bytes are kept for a server that is away. What does not fit is refused. */
const maxHeldBytes = 64 * 1024 * 1024

interface Message {
  readonly subject: string
  readonly payload: Uint8Array
  readonly headers: string | undefined
  readonly reply: string | undefined
}

const optionsOf = ({ headers, reply }: Message): PublishOptions => {
  const options: PublishOptions = {}
  if (headers !== undefined) options.headers = new EncodedHeaders(headers) as unknown as MsgHdrs
  if (reply !== undefined) options.reply = reply
  return options
}

const empty = new Uint8Array(0)

export class Outbox {
  readonly #connection: NatsConnection
  readonly #onRefused: (subject: string, cause: unknown) => void
  #messages: Array<Message> = []
  #beforeFlush: Array<() => void> = []
  #afterFlush: Array<() => void> = []
  #scheduled = false
  #held = false
  #heldBytes = 0
  #release: NodeJS.Timeout | undefined
  #lingering: NodeJS.Timeout | undefined

  /** `onRefused` hears of messages that will not be sent: refused by the client itself, or too much to be kept. */
  constructor(connection: NatsConnection, onRefused: (subject: string, cause: unknown) => void) {
    this.#connection = connection
    this.#onRefused = onRefused
  }

  publish(subject: string, payload: Uint8Array = empty, headers?: string, reply?: string): void {
    if (this.#held) {
      this.#heldBytes += payload.length
      if (this.#heldBytes > maxHeldBytes) return this.#onRefused(subject, "the server is away, and too much is waiting")
    }
    this.#messages.push({ subject, payload, headers, reply })
    this.#schedule()
  }

  /** Asks and waits for one answer, past the queue. Fails where nobody listens or after `timeoutMs`. */
  request(subject: string, payload: Uint8Array, headers: string, timeoutMs: number): Promise<Msg> {
    return this.#connection.request(subject, payload, {
      headers: new EncodedHeaders(headers) as unknown as MsgHdrs,
      timeout: timeoutMs
    })
  }

  /** Runs `produce` once just before the next send, so that what gathers within a turn can leave as one message. */
  beforeFlush(produce: () => void): void {
    this.#beforeFlush.push(produce)
    this.#schedule()
  }

  /**
   * The same, for what is in no hurry: it leaves with the next send, which it brings about itself only after a millisecond.
   * Where much is going on, many such wishes share one system call, here, in the server and in the receiver.
   */
  linger(produce: () => void): void {
    this.#beforeFlush.push(produce)
    if (this.#scheduled || this.#lingering !== undefined) return
    this.#lingering = setTimeout(() => this.#patienceEnded(), lingerMs)
  }

  /** Runs `done` once everything published so far has been written to the socket. */
  afterFlush(done: () => void): void {
    this.#afterFlush.push(done)
    this.#schedule()
  }

  /** Keeps everything from now on: the client would drop what it is given while its server is away. */
  hold(): void {
    this.#held = true
    clearTimeout(this.#release)
  }

  /** Sends what was kept, after so many milliseconds: those to whom it goes have to find the server again too. */
  releaseAfter(delayMs: number): void {
    clearTimeout(this.#release)
    this.#release = setTimeout(() => {
      this.#held = false
      this.#heldBytes = 0
      this.flush()
    }, delayMs)
  }

  /** Sends at once what has gathered, unless it is held. */
  flush(): void {
    this.#scheduled = false
    if (this.#held) return
    const produce = this.#beforeFlush
    this.#beforeFlush = []
    for (const run of produce) run()
    const messages = this.#messages
    this.#messages = []
    for (const message of messages) {
      try {
        this.#connection.publish(message.subject, message.payload, optionsOf(message))
      } catch (cause) {
        this.#onRefused(message.subject, cause)
      }
    }
    if (this.#afterFlush.length > 0) {
      const done = this.#afterFlush
      this.#afterFlush = []
      // nats-core writes in a microtask of its own, queued by the publishing above
      queueMicrotask(() => {
        for (const run of done) run()
      })
    }
    this.#scheduled = this.#messages.length > 0 || this.#beforeFlush.length > 0
    if (this.#scheduled) setImmediate(() => this.flush())
  }

  #patienceEnded(): void {
    this.#lingering = undefined
    if (!this.#scheduled && this.#beforeFlush.length > 0) this.flush()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.flush())
  }
}
