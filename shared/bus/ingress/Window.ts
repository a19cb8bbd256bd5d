/**
 * How many jobs of a pool ingress lets lie unclaimed in the stream: enough that no worker has to wait for one, and not
 * more, for the stream gives them out in the order of their arrival, whoever has been waiting meanwhile.
 *
 * Every claim tells how many jobs were left behind in the stream. None means that workers may be idle, so the window opens
 * by one job with each such claim, which doubles it within the time that a job needs to be claimed. More than workers take
 * within a moment are more than they need, and the window closes by what is too much.
 */

/** What is left behind may be what workers take within this many milliseconds. */
const aheadMs = 20

/** With less than this two slots that become free at the same moment could not both be filled at once. */
const least = 2

/** Before anything is known: little, for opening it takes no time. */
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
   * A worker has claimed one of our jobs, when so many were left `behind` it in the stream, those of every ingress; of ours
   * `unclaimed` are left now. `perSecond` is how fast our jobs are claimed, where that is known.
   */
  claimed(behind: number, unclaimed: number, perSecond: number | undefined): void {
    const enough = Math.max(1, (perSecond ?? 0) * aheadMs / 1_000)
    if (behind <= enough) {
      // only where it was what kept jobs waiting
      if (unclaimed + 1 >= this.#size) this.#size = Math.min(this.#most, this.#size + 1)
      return
    }
    const ours = Math.min(1, unclaimed / behind)
    const close = Math.ceil((behind - enough) * ours)
    this.#size = Math.max(Math.min(least, this.#most), Math.min(this.#size, unclaimed - close))
  }
}
