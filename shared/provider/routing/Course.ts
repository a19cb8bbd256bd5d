/** How one request has fared so far: which candidates have failed it, which were not even called, and what is left to try. */
import { defaultRetry, type Retry } from "../../catalogue/Catalogue.ts"
import { InternalError, isProviders, isTransient, type JobError } from "../../contract/JobError.ts"
import type { Passed } from "./Passed.ts"
import type { Candidate } from "./Route.ts"

interface Failure {
  readonly error: JobError
  /** How many calls have failed. */
  readonly times: number
  readonly round: number
  /** Until when it asked to be left alone, in epoch milliseconds. */
  readonly notBefore: number
}

/** How often a request may be sent, all candidates and retries together. */
const maxCalls = 6

export const retryOf = ({ endpoint }: Candidate): Retry => endpoint.provider.retry ?? defaultRetry

export class Course {
  readonly candidates: ReadonlyArray<Candidate>
  readonly #failures = new Map<Candidate, Failure>()
  readonly #passed = new Map<Candidate, Passed>()
  /** The last failure of a call. */
  #failed: { readonly candidate: Candidate; readonly error: JobError } | undefined
  #calls = 0
  #round = 0
  #over = false

  constructor(candidates: ReadonlyArray<Candidate>) {
    this.candidates = candidates
  }

  /** Whether nobody else is to be asked. */
  get isOver(): boolean {
    return this.#over || this.#calls >= maxCalls
  }

  end(): void {
    this.#over = true
  }

  /** Whether it would be called once more. */
  isRetry(candidate: Candidate): boolean {
    return this.#failures.has(candidate)
  }

  /** Whether to turn to it in this round. */
  isOpen(candidate: Candidate, now: number): boolean {
    const failure = this.#failures.get(candidate)
    if (failure === undefined) return true
    return failure.round < this.#round && failure.notBefore <= now && this.#mayRepeat(candidate, failure)
  }

  note(candidate: Candidate, miss: JobError | Passed, now: number): void {
    if (miss._tag === "Passed") {
      this.#passed.set(candidate, miss)
      return
    }
    this.#calls++
    this.#passed.delete(candidate)
    this.#failed = { candidate, error: miss }
    // another provider would find the request as wrong as this one
    if (!isProviders(miss)) this.#over = true
    this.#failures.set(candidate, {
      error: miss,
      times: (this.#failures.get(candidate)?.times ?? 0) + 1,
      round: this.#round,
      notBefore: now + (("retryAfterMs" in miss ? miss.retryAfterMs : null) ?? 0)
    })
  }

  /** Those that would take the request if it waited. */
  get busy(): ReadonlyArray<Candidate> {
    return this.isOver ? [] : this.candidates.filter((candidate) => this.#passed.get(candidate)?.reason === "busy")
  }

  /** How long until the first of those that may be called again can be; `undefined` where there is none. */
  waitMs(now: number): number | undefined {
    if (this.isOver) return undefined
    // where nobody was called in the last round, there is nothing left to try
    const again = [...this.#failures]
      .filter(([candidate, failure]) => failure.round === this.#round && this.#mayRepeat(candidate, failure))
    return again.length === 0 ? undefined : Math.max(0, Math.min(...again.map(([, { notBefore }]) => notBefore)) - now)
  }

  /** By which those that have failed are called again; `undefined` where nobody is. */
  get policy(): Retry | undefined {
    return this.#failed === undefined || this.isOver ? undefined : retryOf(this.#failed.candidate)
  }

  /** From here on those that have failed may be called again. */
  nextRound(): void {
    this.#round++
    this.#passed.clear()
  }

  /** What the client is told: the last failure or, where nobody was called, when somebody can be. */
  get verdict(): JobError {
    if (this.#failed !== undefined) return this.#failed.error
    const soonest = [...this.#passed].toSorted(([, a], [, b]) => a.retryAfterMs - b.retryAfterMs)[0]
    if (soonest === undefined) return new InternalError()
    const [{ endpoint }, passed] = soonest
    return passed.toError(endpoint.name)
  }

  #mayRepeat(candidate: Candidate, { error, times }: Failure): boolean {
    return isTransient(error) && times <= retryOf(candidate).times
  }
}
