/**
 * Stores events in their stream. The events of one turn of the event loop form a page, which is sent again under the same id until
 * JetStream confirms it.
 *
 * No caller waits. A page leaves in the same write as the messages published in its turn, after them. While NATS is unreachable, pages are
 * held, and they are sent after the reconnect.
 */
import type { Msg, Subscription } from "@nats-io/nats-core"
import { ReleasingMap } from "../bounds/ReleasingMap.ts"
import { encodePage } from "./EventStream.ts"
import type { Nats } from "./Nats.ts"
import { encodeHeaders, messageIdHeader } from "./Outbox.ts"

interface Page {
  readonly id: number
  readonly subject: string
  readonly since: number
  readonly events: Array<string>
  /** The size of the events, including line ends. */
  bytes: number
  /** Infinity until the page is sent. */
  sentAt: number
  /** Each runs once, when the page is stored or after `patienceMs`. */
  onStored: Array<() => void>
}

/** Small, because readers decode a whole page at a time. An event takes about 400 bytes, so larger pages would save hardly anything. */
const maxPageBytes = 32 * 1024
/** How long a page takes more events while NATS is unreachable, in milliseconds. Short: `patienceMs` counts from its first event. */
const maxOpenMs = 500
/** After how long without confirmation a page is sent again, in milliseconds. */
const confirmMs = 2_000
/** How often unconfirmed pages are resent, in milliseconds, and about how many events at a time: more would slow a slow server further. */
const checkMs = 500
const maxResent = 1_000
/**
 * `onStored` runs this long after a page's first event even if the page is not stored, in milliseconds, but not within this time after
 * an outage of NATS, nor while the writer closes. The page is still held and resent.
 */
const patienceMs = 10_000
/** Maximum number of bytes in unconfirmed pages. Events beyond that are lost. */
const maxWaitingBytes = 32 * 1024 * 1024

export class EventWriter {
  readonly #nats: Nats["Service"]
  readonly #now: () => number
  readonly #onLost: () => void
  readonly #waiting = new ReleasingMap<Page>()
  /** The page that still takes events. */
  #open: Page | undefined
  #waitingBytes = 0
  #count = 0
  /** When NATS was last unreachable, or not yet settled after a reconnect. */
  #awayAt = Number.NEGATIVE_INFINITY
  readonly #inbox: string
  readonly #answers: Subscription
  /** Runs while pages are unconfirmed. */
  #watch: NodeJS.Timeout | undefined
  #onEmpty: (() => void) | undefined

  /** `onLost` runs for every event that does not fit. */
  constructor(options: { readonly nats: Nats["Service"]; readonly now: () => number; readonly onLost: () => void }) {
    this.#nats = options.nats
    this.#now = options.now
    this.#onLost = options.onLost
    this.#inbox = options.nats.inbox()
    this.#answers = this.#nats.subscribe(`${this.#inbox}.*`, (message) => this.#confirm(message))
  }

  /** Writes an event, which must be a single line. Readers may see it several times, and other writers' events with the same id. */
  write(subject: string, event: string, onStored: () => void): void {
    const bytes = Buffer.byteLength(event) + 1
    if (this.#waitingBytes + bytes > maxWaitingBytes) {
      this.#onLost()
      return onStored()
    }
    const page = this.#pageFor(subject, bytes)
    page.events.push(event)
    page.onStored.push(onStored)
    page.bytes += bytes
    this.#waitingBytes += bytes
  }

  /** Waits until everything is stored, for at most `withinMs` milliseconds. Returns the number of events that are not stored. */
  async close(withinMs: number): Promise<number> {
    if (this.#waiting.size > 0) {
      await new Promise<void>((resolve) => {
        this.#onEmpty = resolve
        setTimeout(resolve, withinMs).unref()
      })
    }
    clearInterval(this.#watch)
    this.#answers.unsubscribe()
    return [...this.#waiting].reduce((sum, { events }) => sum + events.length, 0)
  }

  /** The open page if it has room, or else a new one, to be sent at the end of the turn. */
  #pageFor(subject: string, bytes: number): Page {
    const now = this.#now()
    const open = this.#open
    if (open?.subject === subject && open.bytes + bytes <= maxPageBytes && now - open.since < maxOpenMs) return open
    const page: Page = { id: ++this.#count, subject, since: now, events: [], bytes: 0, sentAt: Infinity, onStored: [] }
    this.#open = page
    this.#waiting.add(page)
    this.#watch ??= setInterval(() => this.#check(), checkMs)
    this.#nats.outbox.beforeFlush(() => this.#send(page))
    return page
  }

  #send(page: Page): void {
    if (page === this.#open) this.#open = undefined
    page.sentAt = this.#now()
    const name = `${this.#inbox}.${page.id}`
    const headers = encodeHeaders({ [messageIdHeader]: name })
    this.#nats.outbox.publish(page.subject, encodePage(page.events), headers, name)
  }

  #confirm(message: Msg): void {
    const page = this.#waiting.get(Number(message.subject.slice(this.#inbox.length + 1)))
    // any other answer, such as no listener or no leader, is retried
    if (page === undefined || !isStored(message)) return
    this.#waiting.delete(page)
    this.#waitingBytes -= page.bytes
    for (const run of page.onStored) run()
    if (this.#waiting.size === 0) this.#onEmpty?.()
  }

  #check(): void {
    if (this.#waiting.size === 0) {
      clearInterval(this.#watch)
      this.#watch = undefined
      return
    }
    const now = this.#now()
    // the outbox itself sends the pages that it held during an outage
    if (!this.#nats.isSettled()) return void (this.#awayAt = now)
    let resent = 0
    for (const page of this.#waiting) {
      // while closing, an event must not count as stored, so that another worker gets its job and writes the event
      const isOverdue = this.#onEmpty === undefined && now - Math.max(page.since, this.#awayAt) > patienceMs
      for (const run of isOverdue ? page.onStored.splice(0) : []) run()
      if (now - page.sentAt < confirmMs || resent >= maxResent) continue
      resent += page.events.length
      this.#send(page)
    }
  }
}

const isStored = (message: Msg): boolean => {
  if (message.data.length === 0) return false
  const { error, seq } = message.json<{ readonly seq?: number; readonly error?: object }>()
  return error === undefined && seq !== undefined
}
