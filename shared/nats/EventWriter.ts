/**
 * Stores each event in its stream exactly once: sends it under the same id until JetStream confirms it.
 *
 * No caller waits. An event leaves in the same write as the messages published before it in the same turn. While NATS is away,
 * events are held and sent after the reconnect.
 */
import type { Msg, Subscription } from "@nats-io/nats-core"
import type { Nats } from "./Nats.ts"
import { encodeHeaders, messageIdHeader } from "./Outbox.ts"

interface Waiting {
  readonly subject: string
  readonly id: string
  readonly payload: Uint8Array
  readonly since: number
  sentAt: number
  /** Runs once, when the event is stored or `patienceMs` have passed. */
  onStored: (() => void) | undefined
}

/** After how long without confirmation an event is sent again, in milliseconds. */
const confirmMs = 2_000
/** How often unconfirmed events are resent, and at most how many at a time: more would slow down a slow server. */
const checkMs = 500
const maxResent = 1_000
/** After this long `onStored` runs anyway; the event is still held and resent. */
const patienceMs = 10_000
/** Maximum number of bytes held. Events beyond that are lost. */
const maxWaitingBytes = 32 * 1024 * 1024

export class EventWriter {
  readonly #nats: Nats["Service"]
  readonly #now: () => number
  readonly #onLost: () => void
  readonly #waiting = new Map<number, Waiting>()
  #waitingBytes = 0
  #count = 0
  readonly #inbox: string
  readonly #answers: Subscription
  readonly #watch: NodeJS.Timeout
  #onEmpty: (() => void) | undefined

  /** `onLost` runs for every event that does not fit. */
  constructor(options: { readonly nats: Nats["Service"]; readonly now: () => number; readonly onLost: () => void }) {
    this.#nats = options.nats
    this.#now = options.now
    this.#onLost = options.onLost
    this.#inbox = options.nats.inbox()
    this.#answers = this.#nats.subscribe(`${this.#inbox}.*`, (message) => this.#confirm(message))
    this.#watch = setInterval(() => this.#check(), checkMs)
  }

  write(subject: string, id: string, payload: Uint8Array, onStored: () => void): void {
    if (this.#waitingBytes + payload.length > maxWaitingBytes) {
      this.#onLost()
      return onStored()
    }
    const now = this.#now()
    const number = ++this.#count
    const waiting = { subject, id, payload, since: now, sentAt: now, onStored }
    this.#waiting.set(number, waiting)
    this.#waitingBytes += payload.length
    this.#send(number, waiting)
  }

  /** Returns when everything is stored, or after `withinMs`, with the number of events that are not stored. */
  async close(withinMs: number): Promise<number> {
    if (this.#waiting.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onEmpty = resolve
        setTimeout(resolve, withinMs).unref()
      })
    }
    clearInterval(this.#watch)
    this.#answers.unsubscribe()
    return this.#waiting.size
  }

  #send(number: number, { id, payload, subject }: Waiting): void {
    this.#nats.outbox.publish(subject, payload, encodeHeaders({ [messageIdHeader]: id }), `${this.#inbox}.${number}`)
  }

  #confirm(message: Msg): void {
    const number = Number(message.subject.slice(this.#inbox.length + 1))
    const waiting = this.#waiting.get(number)
    // any other answer, such as no listener or no leader, is retried
    if (waiting === undefined || !isStored(message)) return
    this.#waiting.delete(number)
    this.#waitingBytes -= waiting.payload.length
    waiting.onStored?.()
    if (this.#waiting.size === 0) this.#onEmpty?.()
  }

  #check(): void {
    const now = this.#now()
    // the outbox sends what it held during an outage; a second copy is not needed
    const maySend = this.#nats.isSettled()
    let resent = 0
    for (const [number, waiting] of this.#waiting) {
      if (waiting.onStored !== undefined && now - waiting.since > patienceMs) {
        waiting.onStored()
        waiting.onStored = undefined
      }
      if (!maySend || now - waiting.sentAt < confirmMs || resent === maxResent) continue
      resent++
      waiting.sentAt = now
      this.#send(number, waiting)
    }
  }
}

const isStored = (message: Msg): boolean => {
  if (message.data.length === 0) return false
  const { error, seq } = message.json<{ readonly seq?: number; readonly error?: object }>()
  return error === undefined && seq !== undefined
}
