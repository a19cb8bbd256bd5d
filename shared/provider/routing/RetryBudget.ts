/** A provider's retry budget, a share of its requests: if every request fails, retries must not multiply the load. */

/** Maximum number of retries that can be saved up. */
const capacity = 5

/** Retries per second that a provider with few requests may have. */
const leastPerSecond = 1

export class RetryBudget {
  /** One at the start: a worker's first request may meet a transient failure. */
  #tokens = 1
  /** When the last request came, in milliseconds. */
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
