/** A provider's retry budget: retries are limited to a share of the requests, so that they do not multiply the load in an outage. */

/** Maximum number of retries that can be saved up. */
const capacity = 5

/** How many retries per second a provider with few requests may have. */
const leastPerSecond = 1

export class RetryBudget {
  /** The retries in the budget. One at the start, because a worker's first request may meet a transient failure. */
  #tokens = 1
  /** The time of the last request, in milliseconds. */
  #lastAt = Infinity

  /** Adds the share that a new request brings, or more if requests are rare. */
  deposit(share: number, now: number): void {
    this.#add(Math.max(share, (now - this.#lastAt) / 1_000 * leastPerSecond))
    this.#lastAt = now
  }

  /** Takes one retry. Returns whether there was one. */
  withdraw(): boolean {
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }

  /** Returns a retry that was not made. */
  refund(): void {
    this.#add(1)
  }

  #add(tokens: number): void {
    this.#tokens = Math.min(capacity, this.#tokens + tokens)
  }
}
