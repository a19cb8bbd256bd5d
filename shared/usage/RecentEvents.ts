/**
 * Recognises usage events that are stored again. A writer repeats a page that is not confirmed, and several workers may write
 * the event of one job.
 *
 * The first event with an id counts. Whether an event is the first depends only on the stream before it, so all projectors
 * agree, and one that restarts reads a little of the stream again.
 */
import type { Page } from "../nats/EventStream.ts"
import type { UsageEvent } from "./UsageEvent.ts"

/** An id is remembered for at least this long, or for this many other events. */
const rememberedMs = 10 * 60_000
const mostRemembered = 250_000

interface Generation {
  /** The first page, and when it was stored. */
  readonly from: number
  readonly since: number
  /** The sequence of each id's first event. */
  readonly firsts: Map<string, number>
}

export class RecentEvents {
  /** The stream's creation time. */
  readonly stream: string
  #next: number
  #current: Generation | undefined
  #before: Generation | undefined

  /** Knows nothing of the stream before `next`. */
  constructor(stream: string, next: number) {
    this.stream = stream
    this.#next = next
  }

  /** The first sequence that has not been read yet. */
  get next(): number {
    return this.#next
  }

  /** The sequence from which another has to read to know the same events. */
  get from(): number {
    return (this.#before ?? this.#current)?.from ?? this.#next
  }

  /** The given events of the next page without those that are in an earlier one. Gives the same if a page is read again. */
  read({ sequence, storedAt }: Page, events: ReadonlyArray<UsageEvent>): ReadonlyArray<UsageEvent> {
    if (sequence >= this.#next) {
      this.#next = sequence + 1
      this.#forget(sequence, storedAt)
    }
    const news = new Map<string, UsageEvent>()
    for (const event of events) {
      const first = this.#before?.firsts.get(event.id) ?? this.#current?.firsts.get(event.id)
      if (first === undefined) this.#current?.firsts.set(event.id, sequence)
      if ((first ?? sequence) === sequence && !news.has(event.id)) news.set(event.id, event)
    }
    return [...news.values()]
  }

  #forget(sequence: number, storedAt: number): void {
    const current = this.#current
    if (current !== undefined && storedAt - current.since < rememberedMs && current.firsts.size < mostRemembered) return
    this.#before = current
    this.#current = { from: sequence, since: storedAt, firsts: new Map() }
  }
}
