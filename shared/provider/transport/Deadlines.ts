/**
 * Checks the deadlines of all open exchanges with one timer. A timer for each deadline, some of which restart with every read, would
 * cost an exchange more than all its other bookkeeping.
 */
import { ReleasingMap } from "../../bounds/ReleasingMap.ts"

/** How often the deadlines are checked, in milliseconds. */
const checkMs = 50

/** Only this much time counts between two checks, in milliseconds: a process that was stalled for longer may have unread answers. */
const mostMs = 1_000

export interface Timed {
  /** Unique among open exchanges. */
  readonly id: number
  /** Runs every `checkMs` milliseconds. `now` is a time by the clock of `Deadlines`. */
  readonly check: (now: number) => void
}

export class Deadlines {
  readonly #open = new ReleasingMap<Timed>()
  #now = 0
  #checkedAt = 0
  #timer: NodeJS.Timeout | undefined
  #lastId = 0

  /** An id for a further exchange. */
  nextId(): number {
    return ++this.#lastId
  }

  add(timed: Timed): void {
    this.#open.add(timed)
    if (this.#timer !== undefined) return
    this.#checkedAt = performance.now()
    this.#timer = setTimeout(() => this.#check(), checkMs)
  }

  delete(timed: Timed): void {
    this.#open.delete(timed)
  }

  /** The time `ms` milliseconds from now, or up to `checkMs` later. */
  in(ms: number): number {
    return this.#now + checkMs + ms
  }

  #check(): void {
    const now = performance.now()
    this.#now += Math.min(now - this.#checkedAt, mostMs)
    this.#checkedAt = now
    for (const timed of this.#open) timed.check(this.#now)
    // without open exchanges nothing runs
    this.#timer = this.#open.size > 0 ? this.#timer?.refresh() : undefined
  }
}
