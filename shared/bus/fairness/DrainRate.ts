/** How fast a queue drains: its recent rate while jobs waited. The rate of an empty queue does not show what workers can do. */

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

  /** An item left the queue. */
  add(): void {
    this.#current++
  }

  /** `ms` milliseconds have passed since the last call; `wasWaiting` if the queue was not empty. */
  tick(now: number, ms: number, wasWaiting: boolean): void {
    const count = this.#current
    this.#current = 0
    if (wasWaiting) {
      this.#spans.push({ until: now, ms, count })
      this.#count += count
      this.#ms += ms
    }
    for (let [first] = this.#spans; first !== undefined; [first] = this.#spans) {
      if (this.#ms - first.ms < countedMs && now - first.until < oldestMs) return
      this.#spans.shift()
      this.#count -= first.count
      this.#ms -= first.ms
    }
  }

  /** `undefined` if unknown, for example if no worker takes jobs. */
  get perSecond(): number | undefined {
    return this.#ms >= least.ms && this.#count >= least.count ? 1_000 * this.#count / this.#ms : undefined
  }
}
