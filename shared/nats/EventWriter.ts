/**
 * Puts events into their stream, each once: an event is sent again under its id until JetStream says that it is stored.
 *
 * Nobody waits for that. An event leaves with whatever else its process publishes in the same turn, behind what was
 * published before it; while NATS is away it is kept, and sent when NATS is back.
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
  /** Runs once when it is stored, or has waited for so long that others should wait no longer. */
  onStored: (() => void) | undefined
}

/** How long JetStream is waited for before an event is sent again, in milliseconds. */
const confirmMs = 2_000
/** How often is looked for such events, and how many are sent again then, so that a slow server is not made slower. */
const lookMs = 500
const againAtOnce = 1_000
/** After this long an event is still kept and sent, but nobody else waits for it. */
const patienceMs = 10_000
/** What is kept at most. What does not fit is lost. */
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

  /** `onLost` runs for every event that there was no room for. */
  constructor(options: { readonly nats: Nats["Service"]; readonly now: () => number; readonly onLost: () => void }) {
    this.#nats = options.nats
    this.#now = options.now
    this.#onLost = options.onLost
    this.#inbox = options.nats.inbox()
    this.#answers = this.#nats.subscribe(`${this.#inbox}.*`, (message) => this.#answered(message))
    this.#watch = setInterval(() => this.#look(), lookMs)
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

  /** Returns when everything is stored, or after so many milliseconds. How many events are not is the answer. */
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

  #answered(message: Msg): void {
    const number = Number(message.subject.slice(this.#inbox.length + 1))
    const waiting = this.#waiting.get(number)
    // whatever else is said, that nobody listens or that there is no leader, is said again to the next try
    if (waiting === undefined || !isStored(message)) return
    this.#waiting.delete(number)
    this.#waitingBytes -= waiting.payload.length
    waiting.onStored?.()
    if (this.#waiting.size === 0) this.#onEmpty?.()
  }

  #look(): void {
    const now = this.#now()
    // what was kept for a server that was away is sent when it is back, without a second time
    const maySend = this.#nats.isSettled()
    let again = 0
    for (const [number, waiting] of this.#waiting) {
      if (waiting.onStored !== undefined && now - waiting.since > patienceMs) {
        waiting.onStored()
        waiting.onStored = undefined
      }
      if (!maySend || now - waiting.sentAt < confirmMs || again === againAtOnce) continue
      again++
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
