/**
 * How many unclaimed jobs of a pool ingress keeps in the stream: enough that no worker waits, and no more, because the stream
 * delivers in order of arrival, without fairness.
 *
 * Every claim reports how many jobs were left in the stream. If there were more than workers take within `aheadMs`, the window
 * shrinks by the excess. Otherwise workers may be idle, and the window grows by one job per claim, so it doubles in the time that
 * a job takes to be claimed.
 */

/** The stream may hold as many jobs as workers take within this many milliseconds. */
const aheadMs = 20

/** The smallest window: enough to fill two slots that become free at the same moment. */
const least = 2

/** The initial window: small, because it grows fast. */
const atFirst = 8

export class Window {
  readonly #most: number
  #size: number

  constructor(most: number) {
    this.#most = most
    this.#size = Math.min(most, atFirst)
  }

  get size(): number {
    return this.#size
  }

  /**
   * A worker has claimed a job of this ingress. `behind` jobs of all ingresses were left in the stream; `unclaimed` jobs of this
   * ingress are left now. `perSecond` is the rate at which this ingress's jobs are claimed, if known.
   */
  claimed(behind: number, unclaimed: number, perSecond: number | undefined): void {
    const enough = Math.max(1, (perSecond ?? 0) * aheadMs / 1_000)
    if (behind <= enough) {
      // a window that was not full kept no job waiting
      if (unclaimed + 1 >= this.#size) this.#size = Math.min(this.#most, this.#size + 1)
      return
    }
    const ours = Math.min(1, unclaimed / behind)
    const close = Math.ceil((behind - enough) * ours)
    this.#size = Math.max(Math.min(least, this.#most), Math.min(this.#size, unclaimed - close))
  }
}
