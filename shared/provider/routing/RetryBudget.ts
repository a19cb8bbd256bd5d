/** A provider's retry budget, a share of its requests: if every request fails, retries must not multiply the load. */

/** Maximum number of retries that can be saved up. */
const capacity = 5

export class RetryBudget {
  /** One at the start: a worker's first request may meet a transient failure. */
  #tokens = 1

  /** Adds the share that a new request brings. */
  deposit(share: number): void {
    this.#tokens = Math.min(capacity, this.#tokens + share)
  }

  /** Takes one retry. Returns whether there was one. */
  withdraw(): boolean {
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}
