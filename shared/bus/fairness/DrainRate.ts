/**
 * How fast a queue drains: its recent rate while jobs waited. Neither an empty queue shows what workers can do, nor one that NATS
 * does not serve: time counts only once the queue has shown that it was served.
 */

/** How much time with waiting jobs counts, and how old it may be, in milliseconds. */
const countedMs = 10_000
const oldestMs = 60_000

/** With less than this, the rate is unknown. */
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
  /** Since the queue was last known to be served. */
  #uncertain = { ms: 0, count: 0 }

  /** An item left the queue. */
  add(): void {
    this.#current++
  }

  /**
   * `ms` milliseconds have passed since the last call; `wasWaiting` if the queue was not empty, `isServed` if it is known to have been
   * served until now.
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

  /** The queue was not served for a while, perhaps since it was last known to be. */
  interrupt(): void {
    this.#uncertain = { ms: 0, count: 0 }
  }

  /** `undefined` if unknown, for example if no worker takes jobs. */
  get perSecond(): number | undefined {
    return this.#ms >= least.ms && this.#count >= least.count ? 1_000 * this.#count / this.#ms : undefined
  }
}
