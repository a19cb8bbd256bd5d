/**
 * Records one request's attempts, and decides the next step by the rules of `RetryRules.ts`. Without effects. All times are in
 * milliseconds of the monotonic clock.
 */
import { defaultRetry, type Retry } from "../../catalogue/Provider.ts"
import { InternalError, type JobError } from "../../contract/JobError.ts"
import { defaultRetryMs } from "../health/Pacer.ts"
import { type RetryRule, ruleOf, ruleToContinue } from "./RetryRules.ts"
import type { Skipped } from "../health/Skipped.ts"
import type { Candidate } from "./Route.ts"

export type Step =
  | {
    readonly kind: "call"
    readonly candidate: Candidate
    readonly isRetry: boolean
    /** When to call. */
    readonly at: number
    /** Whether the call waits for the candidate's limits until the request's deadline, or only for `momentMs`. */
    readonly waits: boolean
  }
  | { readonly kind: "fail"; readonly error: JobError }

interface Failure {
  readonly rule: RetryRule
  /** Number of failed calls. */
  readonly times: number
  /** The pause that the provider asks for, in milliseconds. */
  readonly retryAfterMs: number
  /** The earliest time of the next call. */
  readonly notBefore: number
}

/** Maximum number of calls for one request, across all candidates and retries. */
const maxCalls = 6

/** Maximum number of skipped attempts for one request. */
const maxSkips = 30

/** For how long after an answer has broken off another target may be called to continue it, in milliseconds. */
const continuationMs = 10_000

/** By which fraction a pause varies in both directions. */
const jitter = 0.2

export const retryOf = ({ endpoint }: Candidate): Retry => endpoint.provider.retry ?? defaultRetry

/** The pause before a retry: exponential back-off with jitter. `chance` is from 0 to 1. */
const backOffMs = ({ baseMs, maxMs }: Retry, times: number, chance: number): number =>
  Math.min(baseMs * 2 ** (times - 1), maxMs) * (1 - jitter + 2 * jitter * chance)

/** The pause that a provider asks for, in milliseconds. */
const retryAfterOf = (error: JobError): number => {
  if (error._tag === "ProviderRateLimited") return error.retryAfterMs ?? defaultRetryMs
  return "retryAfterMs" in error ? error.retryAfterMs ?? 0 : 0
}

/** Whether a request that is too long for one candidate may fit another. Models of the same name have the same window. */
const mayBeLarger = (candidate: Candidate, than: Candidate): boolean =>
  candidate.contextWindow === undefined || than.contextWindow === undefined
    ? candidate.endpoint.model !== than.endpoint.model
    : candidate.contextWindow > than.contextWindow

export class AttemptHistory {
  #candidates: ReadonlyArray<Candidate>
  #deadline: number
  readonly #failures = new Map<Candidate, Failure>()
  /** The candidates whose last attempt was skipped, and until when they reject calls. */
  readonly #skipped = new Map<Candidate, { readonly by: Skipped; readonly until: number }>()
  /** Candidates for whose limits the request has waited. */
  readonly #waited = new Set<Candidate>()
  /** Candidates whose context window is too small for the request. */
  readonly #tooSmall: Array<Candidate> = []
  /** The candidate of the last call, which has failed. */
  #last: Candidate | undefined
  #error: JobError | undefined
  #calls = 0
  #skips = 0
  #isEnded = false
  /** Whether an answer has broken off and should be continued. */
  #isContinued = false

  constructor(candidates: ReadonlyArray<Candidate>, deadline: number) {
    this.#candidates = candidates
    this.#deadline = deadline
    // a single candidate is waited for at its first call
    if (candidates.length === 1) this.#waited.add(candidates[0]!)
  }

  /** No further call is allowed: the answer has started. */
  end(): void {
    this.#isEnded = true
  }

  /**
   * The answer has broken off, with the error that is recorded next. From now on only targets that can continue the answer are called;
   * if none does, the client gets this error.
   */
  continueAt(now: number): void {
    this.#deadline = Math.max(this.#deadline, now + continuationMs)
    if (this.#isContinued) return
    this.#isContinued = true
    this.#error = undefined
    this.#candidates = this.#candidates.filter(({ continues }) => continues !== undefined)
  }

  /** Records a failed or skipped attempt. `chance`, from 0 to 1, varies the pause before a retry. */
  record(candidate: Candidate, miss: JobError | Skipped, now: number, chance: number, wasSilent = false): void {
    if (miss._tag === "Skipped") {
      if (++this.#skips > maxSkips + this.#candidates.length) this.end()
      this.#skipped.set(candidate, { by: miss, until: now + miss.retryAfterMs })
      return
    }
    const rule = this.#isContinued
      ? ruleToContinue(miss, wasSilent, candidate.endpoint)
      : ruleOf(miss, candidate.endpoint)
    const times = (this.#failures.get(candidate)?.times ?? 0) + 1
    const retryAfterMs = retryAfterOf(miss)
    const notBefore = now + retryAfterMs + backOffMs(retryOf(candidate), times, chance)
    this.#failures.set(candidate, { rule, times, retryAfterMs, notBefore })
    this.#skipped.delete(candidate)
    this.#calls++
    this.#last = candidate
    // the error of another model helps the client less, if the request was too long for the first
    if (this.#tooSmall.length === 0 && !(this.#isContinued && this.#error !== undefined)) this.#error = miss
    if (rule.otherTargets === "larger context") this.#tooSmall.push(candidate)
    if (rule.otherTargets === "none" || this.#calls >= maxCalls) this.end()
  }

  /** The next step at this time, after everything that was recorded. */
  next(now: number): Step {
    if (this.#isEnded) return { kind: "fail", error: this.#failure }
    const candidates = this.#candidates.filter((candidate) =>
      this.#tooSmall.every((small) => mayBeLarger(candidate, small))
    )
    const isOnly = candidates.length === 1
    const call = (candidate: Candidate, at: number, waits = isOnly): Step => {
      if (waits) this.#waited.add(candidate)
      return { kind: "call", candidate, isRetry: this.#failures.has(candidate), at, waits }
    }

    const again = this.#last === undefined ? undefined : this.#retryFirst(this.#last)
    if (this.#last !== undefined && again !== undefined) return call(this.#last, again)
    const untried = candidates.find((candidate) => !this.#failures.has(candidate) && !this.#skipped.has(candidate))
    if (untried !== undefined) return call(untried, now)
    const busy = candidates.find((candidate) =>
      this.#skipped.get(candidate)?.by.isBusy === true && !this.#waited.has(candidate)
    )
    if (busy !== undefined) {
      // a circuit may close earlier
      const until = Math.min(this.#skipped.get(busy)!.until, this.#deadline)
      const rested = candidates.find((candidate) => this.#restsUntil(candidate) < until)
      return rested === undefined ? call(busy, now, true) : call(rested, Math.max(now, this.#restsUntil(rested)))
    }

    const retries = candidates.flatMap((candidate) => this.#retryAt(candidate) ?? [])
    const at = Math.max(now, Math.min(...retries))
    const ready = at <= this.#deadline ? candidates.find((candidate) => this.#isReady(candidate, at)) : undefined
    return ready === undefined ? { kind: "fail", error: this.#failure } : call(ready, at)
  }

  /** When the candidate may be called again; `undefined` if it may not. */
  #retryAt(candidate: Candidate): number | undefined {
    const failure = this.#failures.get(candidate)
    const mayRepeat = failure !== undefined && failure.rule.sameTarget !== "never" && !this.#skipped.has(candidate) &&
      failure.times <= retryOf(candidate).times
    return mayRepeat ? failure.notBefore : undefined
  }

  /** When the candidate that has just failed may be called again, if that is before any other candidate. */
  #retryFirst(candidate: Candidate): number | undefined {
    if (!this.#candidates.includes(candidate)) return undefined
    const at = this.#retryAt(candidate)
    const { retryAfterMs, rule, times } = this.#failures.get(candidate)!
    const isFirst = rule.sameTarget === "first" && times === 1 && retryAfterMs <= retryOf(candidate).maxMs
    return isFirst && at !== undefined && at <= this.#deadline ? at : undefined
  }

  /** When the open circuit that has rejected a call to the candidate may be closed. */
  #restsUntil(candidate: Candidate): number {
    const skipped = this.#skipped.get(candidate)
    return skipped?.by.reason === "resting" ? skipped.until : Infinity
  }

  /** Whether the candidate may be called again at that time, or its circuit may be closed by then. */
  #isReady(candidate: Candidate, at: number): boolean {
    const skipped = this.#skipped.get(candidate)
    if (skipped !== undefined) return skipped.by.reason === "resting" && skipped.until <= at
    return (this.#retryAt(candidate) ?? Infinity) <= at
  }

  /** The error for the client. If all candidates were skipped, it states when the first one is free again. */
  get #failure(): JobError {
    if (this.#error !== undefined) return this.#error
    const soonest = [...this.#skipped].toSorted(([, a], [, b]) => a.by.retryAfterMs - b.by.retryAfterMs)[0]
    if (soonest === undefined) return new InternalError()
    const [{ endpoint }, { by }] = soonest
    return by.toError(endpoint.name)
  }
}
