/**
 * Decides which usage event of a job counts. There may be several: a writer repeats a page that is not confirmed, and several workers
 * may write the event of one job.
 *
 * The first event with an id counts until one arrives that knows more about the job. An event that only reports a lost worker is
 * replaced by that worker's own event: a worker that cannot reach the stream for a while looks lost, and stores its event later. The
 * event of a worker that had to stop is replaced by the event of the worker that has repeated the job. The decision depends only on
 * the stream up to the event, so all projectors agree; after a restart a projector reads a little of the stream again.
 */
import type { Page } from "../nats/EventStream.ts"
import { knowledgeOf, type UsageEvent } from "./UsageEvent.ts"

/** An id is remembered for at least this long, or for this many other events, whichever ends first. */
const rememberedMs = 10 * 60_000
const mostRemembered = 250_000

/** The effect of an event on the counters. */
export interface Change {
  readonly event: UsageEvent
  /** Whether the event was counted and no longer counts. */
  readonly isWithdrawn: boolean
  /** The sequence of the page whose event it is: of an earlier one if it is withdrawn. */
  readonly page: number
}

/** An event that a better one may replace, or one that has replaced such an event. */
interface Counted {
  readonly event: UsageEvent
  /** The sequence of its page. */
  readonly sequence: number
}

/** The `knowledgeOf` an event that nothing replaces. */
const fullKnowledge = 2

interface Generation {
  /** The first page, and when it was stored. */
  readonly from: number
  readonly since: number
  /** The sequence of each id's first event. */
  readonly firsts: Map<string, number>
  /** For ids whose first event may be replaced: that event, and those that have replaced it. */
  readonly losses: Map<string, Array<Counted>>
}

export class RecentEvents {
  /** The stream's identity; see `EventStream.identityOf`. */
  readonly stream: string
  #next: number
  #current: Generation | undefined
  #before: Generation | undefined

  /** `next`: the sequence from which the stream is read. Earlier events are unknown. */
  constructor(stream: string, next: number) {
    this.stream = stream
    this.#next = next
  }

  /** The first sequence that has not been read yet. */
  get next(): number {
    return this.#next
  }

  /** The sequence from which another instance must read to know the same events. */
  get from(): number {
    return (this.#before ?? this.#current)?.from ?? this.#next
  }

  /** The changes from the events of the next page. Returns the same if a page is read again. */
  read({ sequence, storedAt }: Page, events: ReadonlyArray<UsageEvent>): ReadonlyArray<Change> {
    if (sequence >= this.#next) {
      this.#next = sequence + 1
      this.#forget(sequence, storedAt)
    }
    const changes: Array<Change> = []
    const ids = new Set<string>()
    for (const event of events) {
      if (ids.has(event.id)) continue
      ids.add(event.id)
      const first = this.#firstOf(event, sequence)
      const replaced = first === sequence ? undefined : this.#replacedBy(event, sequence)
      if (replaced !== undefined) changes.push({ event: replaced.event, isWithdrawn: true, page: replaced.sequence })
      if (first === sequence || replaced !== undefined) changes.push({ event, isWithdrawn: false, page: sequence })
    }
    return changes
  }

  /** The sequence of the page with the first event of this id. */
  #firstOf(event: UsageEvent, sequence: number): number {
    const { id } = event
    const known = this.#before?.firsts.get(id) ?? this.#current?.firsts.get(id)
    if (known !== undefined) return known
    this.#current?.firsts.set(id, sequence)
    if (knowledgeOf(event) < fullKnowledge) this.#current?.losses.set(id, [{ event, sequence }])
    return sequence
  }

  /** The event of an earlier page that this one replaces. */
  #replacedBy(event: UsageEvent, sequence: number): Counted | undefined {
    const { id } = event
    const counted = this.#before?.losses.get(id) ?? this.#current?.losses.get(id)
    if (counted === undefined) return undefined
    const at = counted.findIndex((one) => one.sequence === sequence)
    // the page is read again
    if (at !== -1) return counted[at - 1]
    const last = counted.at(-1)
    if (last === undefined || knowledgeOf(event) <= knowledgeOf(last.event)) return undefined
    counted.push({ event, sequence })
    const first = this.#before?.firsts.get(id)
    if (first !== undefined) {
      // remembered anew, because this page may be stored again after the earlier one is forgotten
      this.#current?.firsts.set(id, first)
      this.#current?.losses.set(id, counted)
    }
    return last
  }

  #forget(sequence: number, storedAt: number): void {
    const current = this.#current
    if (current !== undefined && storedAt - current.since < rememberedMs && current.firsts.size < mostRemembered) return
    this.#before = current
    this.#current = { from: sequence, since: storedAt, firsts: new Map(), losses: new Map() }
  }
}
