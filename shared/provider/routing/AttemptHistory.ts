/** One request's attempts so far: which candidates failed, which were skipped, and which are left to try. */
import { defaultRetry, type Retry } from "../../catalogue/Provider.ts"
import { InternalError, isProviderFault, isTransient, type JobError } from "../../contract/JobError.ts"
import type { Skipped } from "./Skipped.ts"
import type { Candidate } from "./Route.ts"

interface Failure {
  readonly error: JobError
  /** Number of failed calls. */
  readonly times: number
  readonly round: number
  /** The earliest time of the next call, by its `retry-after`. Epoch milliseconds. */
  readonly notBefore: number
}

/** Maximum number of calls for one request, across all candidates and retries. */
const maxCalls = 6

export const retryOf = ({ endpoint }: Candidate): Retry => endpoint.provider.retry ?? defaultRetry

export class AttemptHistory {
  readonly candidates: ReadonlyArray<Candidate>
  readonly #failures = new Map<Candidate, Failure>()
  readonly #skipped = new Map<Candidate, Skipped>()
  /** The last failure of a call. */
  #lastFailure: { readonly candidate: Candidate; readonly error: JobError } | undefined
  #calls = 0
  #round = 0
  #isEnded = false

  constructor(candidates: ReadonlyArray<Candidate>) {
    this.candidates = candidates
  }

  /** Whether no further call is allowed. */
  get isEnded(): boolean {
    return this.#isEnded || this.#calls >= maxCalls
  }

  end(): void {
    this.#isEnded = true
  }

  /** Whether a call to the candidate would be a retry. */
  isRetry(candidate: Candidate): boolean {
    return this.#failures.has(candidate)
  }

  /** Whether to try the candidate in this round. */
  isEligible(candidate: Candidate, now: number): boolean {
    const failure = this.#failures.get(candidate)
    if (failure === undefined) return true
    return failure.round < this.#round && failure.notBefore <= now && this.#mayRepeat(candidate, failure)
  }

  record(candidate: Candidate, miss: JobError | Skipped, now: number): void {
    if (miss._tag === "Skipped") {
      this.#skipped.set(candidate, miss)
      return
    }
    this.#calls++
    this.#skipped.delete(candidate)
    this.#lastFailure = { candidate, error: miss }
    // every other provider would reject the request, too
    if (!isProviderFault(miss)) this.#isEnded = true
    this.#failures.set(candidate, {
      error: miss,
      times: (this.#failures.get(candidate)?.times ?? 0) + 1,
      round: this.#round,
      notBefore: now + (("retryAfterMs" in miss ? miss.retryAfterMs : null) ?? 0)
    })
  }

  /** The candidates that would take the request if it waited. */
  get busy(): ReadonlyArray<Candidate> {
    return this.isEnded ? [] : this.candidates.filter((candidate) => this.#skipped.get(candidate)?.reason === "busy")
  }

  /** Time until the first retry is possible; `undefined` if no candidate may be retried. */
  waitMs(now: number): number | undefined {
    if (this.isEnded) return undefined
    // only failures of the last round can be retried
    const again = [...this.#failures]
      .filter(([candidate, failure]) => failure.round === this.#round && this.#mayRepeat(candidate, failure))
    return again.length === 0 ? undefined : Math.max(0, Math.min(...again.map(([, { notBefore }]) => notBefore)) - now)
  }

  /** The policy of the last failed candidate; `undefined` if no retry is allowed. */
  get retryPolicy(): Retry | undefined {
    return this.#lastFailure === undefined || this.isEnded ? undefined : retryOf(this.#lastFailure.candidate)
  }

  /** Starts a round, in which failed candidates may be retried. */
  nextRound(): void {
    this.#round++
    this.#skipped.clear()
  }

  /** The error for the client: the last failure. If all candidates were skipped, it says when the first is free again. */
  get error(): JobError {
    if (this.#lastFailure !== undefined) return this.#lastFailure.error
    const soonest = [...this.#skipped].toSorted(([, a], [, b]) => a.retryAfterMs - b.retryAfterMs)[0]
    if (soonest === undefined) return new InternalError()
    const [{ endpoint }, skipped] = soonest
    return skipped.toError(endpoint.name)
  }

  #mayRepeat(candidate: Candidate, { error, times }: Failure): boolean {
    return isTransient(error) && times <= retryOf(candidate).times
  }
}
