/**
 * Combines what a process publishes in a few turns of its event loop into one write.
 *
 * nats-core writes to its socket at every microtask turn, so successive fibers would each cause a system call in the process, the
 * server and the receiver. Nothing else saves as much time on the path of a request.
 */
import type { Msg, MsgHdrs, NatsConnection, PublishOptions } from "@nats-io/nats-core"

/** JetStream drops further messages with the same id. */
export const messageIdHeader = "Nats-Msg-Id"

/** Headers that are already text. nats-core only calls their `encode`. */
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
 * The header lines of one message. A control character would split a header and surrounding white space would be lost, so
 * values that are not entirely printable ASCII are percent-encoded.
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

/** Decodes a value from `encodeHeaders`. Returns other values unchanged. */
export const decodeHeader = (value: string): string => {
  if (!value.includes("%")) return value
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}

/** The maximum time that `linger` waits for another send, in milliseconds. */
const lingerMs = 1

/** How many bytes are held while the server is unreachable. Messages beyond that are refused. */
const maxHeldBytes = 64 * 1024 * 1024

/** The approximate overhead of a held message beside its texts and payload, in bytes. */
const messageBytes = 256

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

/** How many turns of the event loop may gather messages for one write. */
const maxTurns = 5

/** With this many messages, the outbox waits for no further turn: that would save little, while their receivers may be idle. */
const enough = 8

export class Outbox {
  readonly #connection: NatsConnection
  readonly #onRefused: (subject: string, cause: unknown) => void
  #messages: Array<Message> = []
  #beforeFlush: Array<() => void> = []
  #withFlush: Array<() => void> = []
  #afterFlush: Array<() => void> = []
  #scheduled = false
  /** How often a send was requested so far, and the count at the last send. */
  #asked = 0
  #askedBefore = 0
  #held = false
  #heldBytes = 0
  #release: NodeJS.Timeout | undefined
  #lingering: NodeJS.Timeout | undefined

  /** `onRefused` runs for messages that are never sent: the client refused them, or too many bytes are held. */
  constructor(connection: NatsConnection, onRefused: (subject: string, cause: unknown) => void) {
    this.#connection = connection
    this.#onRefused = onRefused
  }

  publish(subject: string, payload: Uint8Array = empty, headers?: string, reply?: string): void {
    if (this.#held) {
      this.#heldBytes += messageBytes + subject.length + payload.length + (headers?.length ?? 0)
      if (this.#heldBytes > maxHeldBytes) return this.#onRefused(subject, "the server is away and the outbox is full")
    }
    this.#messages.push({ subject, payload, headers, reply })
    this.#schedule()
  }

  /** Sends a request immediately and waits for one answer. Fails if the subject has no listener, or after `timeoutMs`. */
  request(subject: string, payload: Uint8Array, headers: string, timeoutMs: number): Promise<Msg> {
    return this.#connection.request(subject, payload, {
      headers: new EncodedHeaders(headers) as unknown as MsgHdrs,
      timeout: timeoutMs
    })
  }

  /** Runs `produce` once just before the next send, so that it can publish everything gathered until then as one message. */
  beforeFlush(produce: () => void): void {
    this.#beforeFlush.push(produce)
    this.#schedule()
  }

  /**
   * Like `beforeFlush`, but not urgent: causes a send only if no other send happens within a millisecond. Under load many such calls
   * share one system call in the process, the server and the receiver.
   */
  linger(produce: () => void): void {
    this.#beforeFlush.push(produce)
    this.#scheduleSoon()
  }

  /**
   * Runs `produce` once with the next send, after the callbacks of `beforeFlush` and `linger`. What `produce` publishes leaves before
   * everything else, so that an answer leaves before its usage event and its job's acknowledgement. Call `wake` to cause the send.
   */
  withFlush(produce: () => void): void {
    this.#withFlush.push(produce)
  }

  /** Causes a send: `now` as `beforeFlush` does, `soon` as `linger` does. */
  wake(when: "now" | "soon"): void {
    if (when === "now") this.#schedule()
    else this.#scheduleSoon()
  }

  /** Sends a message immediately, even if others are held. */
  publishNow(subject: string, payload: Uint8Array = empty, headers?: string, reply?: string): void {
    try {
      this.#connection.publish(subject, payload, optionsOf({ subject, payload, headers, reply }))
    } catch (cause) {
      this.#onRefused(subject, cause)
    }
  }

  /** Runs `done` once everything published so far has been written to the socket. */
  afterFlush(done: () => void): void {
    this.#afterFlush.push(done)
    this.#schedule()
  }

  /** Holds all messages from now on, because the client would drop them while its server is unreachable. */
  hold(): void {
    this.#held = true
    clearTimeout(this.#release)
    this.#release = undefined
  }

  /** Sends the held messages after `delayMs` milliseconds, because their receivers have to reconnect too. */
  releaseAfter(delayMs: number): void {
    clearTimeout(this.#release)
    this.#release = setTimeout(() => this.#releaseNow(), delayMs)
  }

  /** Sends the held messages earlier than `releaseAfter` intends, because all their receivers have answered. */
  release(): void {
    if (this.#release !== undefined) this.#releaseNow()
  }

  #releaseNow(): void {
    clearTimeout(this.#release)
    this.#release = undefined
    this.#held = false
    this.#heldBytes = 0
    this.flush()
  }

  /** Sends the gathered messages immediately, unless they are held. */
  flush(): void {
    this.#askedBefore = this.#asked
    this.#scheduled = false
    if (this.#held) return
    // callbacks may publish without scheduling another send: their messages leave with this one
    this.#scheduled = true
    const produce = this.#beforeFlush
    this.#beforeFlush = []
    for (const run of produce) run()
    const gathered = this.#messages
    this.#messages = []
    const last = this.#withFlush
    this.#withFlush = []
    for (const run of last) run()
    // messages from `withFlush` leave first
    const messages = this.#messages.concat(gathered)
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
      // nats-core writes in its own microtask, which `publish` above has queued
      queueMicrotask(() => {
        for (const run of done) run()
      })
    }
    this.#scheduled = this.#messages.length + this.#beforeFlush.length + this.#withFlush.length > 0
    if (this.#scheduled) this.#flushSoon()
  }

  #flushLingering(): void {
    this.#lingering = undefined
    if (!this.#scheduled && this.#beforeFlush.length + this.#withFlush.length > 0) this.flush()
  }

  #scheduleSoon(): void {
    if (this.#scheduled || this.#lingering !== undefined) return
    this.#lingering = setTimeout(() => this.#flushLingering(), lingerMs)
  }

  #schedule(): void {
    this.#asked++
    if (this.#scheduled) return
    this.#scheduled = true
    this.#flushSoon()
  }

  /** Sends after the first turn that adds nothing, or once there are `enough` messages. A turn without work takes microseconds. */
  #flushSoon(turns = maxTurns): void {
    const before = this.#asked
    setImmediate(() => {
      const isGrowing = this.#asked > before && this.#asked - this.#askedBefore < enough
      if (isGrowing && turns > 1) this.#flushSoon(turns - 1)
      else this.flush()
    })
  }
}
