/**
 * How many retries a provider may be sent, as a share of the requests to it: where it fails everything, retries would
 * otherwise be a multiple of what it cannot bear already.
 */

/** What may be saved up for a bad minute, in retries. */
const capacity = 5

export class RetryBudget {
  /** One to begin with: a worker that has just started may meet a failure that passes. */
  #tokens = 1

  /** A request is sent for the first time. */
  deposit(share: number): void {
    this.#tokens = Math.min(capacity, this.#tokens + share)
  }

  /** Whether one may be sent again, which is then taken to happen. */
  withdraw(): boolean {
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}
