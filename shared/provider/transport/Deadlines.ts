/**
 * The deadlines of all open exchanges. One timer checks them: timers of their own, some of which restart with every read, would cost
 * each exchange more than all other bookkeeping.
 */
import { ReleasingMap } from "../../bounds/ReleasingMap.ts"

/** How often they are checked, in milliseconds. */
const checkMs = 50

/** The most that may pass between two checks, in milliseconds. A process that was held up longer may have unread answers. */
const mostMs = 1_000

export interface Timed {
  /** Differs from that of every other open exchange. */
  readonly id: number
  /** Runs every `checkMs` milliseconds. `now` is a time by the clock of `Deadlines`. */
  readonly check: (now: number) => void
}

export class Deadlines {
  readonly #open = new ReleasingMap<Timed>()
  #now = 0
  #checkedAt = 0
  #timer: NodeJS.Timeout | undefined

  add(timed: Timed): void {
    this.#open.add(timed)
    if (this.#timer !== undefined) return
    this.#checkedAt = performance.now()
    this.#timer = setTimeout(() => this.#check(), checkMs)
  }

  delete(timed: Timed): void {
    this.#open.delete(timed)
  }

  /** The time in so many milliseconds, or up to `checkMs` later. */
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
