/**
 * Measures how fast a queue drains. Only time in which jobs waited and NATS served the queue counts: otherwise the rate says
 * nothing about the workers.
 */

/** The rate covers the latest `countedMs` with waiting jobs, none of it older than `oldestMs`, in milliseconds. */
const countedMs = 10_000
const oldestMs = 60_000

/** The rate is unknown below either of these: milliseconds with waiting jobs, and jobs. */
const least = { ms: 1_000, count: 3 }

interface Span {
  readonly until: number
  readonly ms: number
  readonly count: number
}

export class DrainRate {
  #spans: Array<Span> = []
  #count = 0
  #ms = 0
  #current = 0
  /** What was measured since the queue was last known to be served. */
  #uncertain = { ms: 0, count: 0 }

  /** An item left the queue. */
  add(): void {
    this.#current++
  }

  /**
   * Counts the `ms` milliseconds since the last call. `wasWaiting`: the queue was not empty. `isServed`: NATS is known to have
   * served the queue until now.
   */
  tick(now: number, ms: number, wasWaiting: boolean, isServed: boolean): void {
    if (wasWaiting) {
      this.#uncertain.ms += ms
      this.#uncertain.count += this.#current
    }
    this.#current = 0
    if (isServed && this.#uncertain.ms > 0) {
      this.#spans.push({ until: now, ...this.#uncertain })
      this.#count += this.#uncertain.count
      this.#ms += this.#uncertain.ms
      this.#uncertain = { ms: 0, count: 0 }
    }
    for (let [first] = this.#spans; first !== undefined; [first] = this.#spans) {
      if (this.#ms - first.ms < countedMs && now - first.until < oldestMs) return
      this.#spans.shift()
      this.#count -= first.count
      this.#ms -= first.ms
    }
  }

  /** Discards what was measured since the queue was last known to be served: it may not have been served in that time. */
  interrupt(): void {
    this.#uncertain = { ms: 0, count: 0 }
  }

  /** `undefined` if unknown, for example if no worker takes jobs. */
  get perSecond(): number | undefined {
    return this.#ms >= least.ms && this.#count >= least.count ? 1_000 * this.#count / this.#ms : undefined
  }
}
