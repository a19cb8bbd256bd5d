/**
 * How fast a queue drains, from how fast it did of late while something was waiting in it: what an empty queue lets
 * through says nothing of what workers can do.
 */

/** How much time is looked back on, in milliseconds: what counts, and how long ago it may be. */
const countedMs = 10_000
const oldestMs = 60_000

/** Less than this says nothing yet. */
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

  /** Something was taken out. */
  add(): void {
    this.#current++
  }

  /** So much time has passed since this was last called, in which something was waiting or not. */
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

  /** `undefined` while it is not known, as where no worker takes anything. */
  get perSecond(): number | undefined {
    return this.#ms >= least.ms && this.#count >= least.count ? 1_000 * this.#count / this.#ms : undefined
  }
}
