/** Counts the calls of the last minute that were not refused, by the second in which they were sent. */

/** The period, in seconds. */
const seconds = 60

export class RecentCalls {
  readonly #counts = new Uint32Array(seconds)
  readonly #since: number
  /** The latest second that is counted. */
  #latest: number
  #total = 0

  /** Times are in milliseconds of a monotonic clock. */
  constructor(now: number) {
    this.#since = now
    this.#latest = Math.floor(now / 1_000)
  }

  /** A call is sent. */
  add(now: number): void {
    this.#advance(now)
    this.#counts[this.#latest % seconds]!++
    this.#total++
  }

  /** A call that was sent at this time was refused, or not made. */
  remove(sentAt: number, now: number): void {
    this.#advance(now)
    const second = Math.floor(sentAt / 1_000)
    if (this.#latest - second >= seconds || this.#counts[second % seconds] === 0) return
    this.#counts[second % seconds]!--
    this.#total--
  }

  count(now: number): number {
    this.#advance(now)
    return this.#total
  }

  /** The calls per millisecond, over the last minute, or since the count began. The next `idleMs` milliseconds will have none. */
  perMs(now: number, idleMs: number): number {
    const spanMs = Math.min(1_000 * seconds, Math.max(1_000, now - this.#since + idleMs))
    return this.count(now) / spanMs
  }

  #advance(now: number): void {
    const second = Math.floor(now / 1_000)
    if (second - this.#latest >= seconds) {
      this.#counts.fill(0)
      this.#total = 0
      this.#latest = second
    }
    while (this.#latest < second) {
      const at = ++this.#latest % seconds
      this.#total -= this.#counts[at]!
      this.#counts[at] = 0
    }
  }
}
