/**
 * The state of one circuit: closed, open, or half open while calls probe the target. It closes by steps.
 *
 * A probe is judged at the first byte of its answer. An answer that comes as a whole may take as long as answers of the target usually
 * do; then another probe may run beside it. After the first good byte, the number of calls is limited for two seconds more.
 *
 * Times are in milliseconds of a monotonic clock.
 */
import type { Breaker } from "../../catalogue/Provider.ts"

/** A call's permission. */
export interface Admission {
  /** The state that has admitted the call: outcomes of former states count for nothing. */
  readonly generation: number
  readonly isProbe: boolean
}

/** An error that says nothing about the provider, such as a rate limit, counts for neither. */
export type Outcome = "success" | "failure" | "neither"

export type State = "closed" | "half open" | "open"

/** How many probes may run together. */
const mostProbes = 4

/** After the first good byte: how many calls may start in each second, until the circuit is closed. */
const steps = [8, 32]
const stepMs = 1_000

/** The retry time while probes run, in milliseconds. */
const probingMs = 1_000

export class Circuit {
  readonly #settings: Breaker
  #state: State = "closed"
  /** The state that was last logged. */
  reported: State = "closed"
  #generation = 0
  /** The last outcomes; `true` for a failure. */
  #outcomes: Array<boolean> = []
  #failures = 0
  #openUntil = Number.NEGATIVE_INFINITY
  #openings = 0
  /** When each running probe was sent. */
  readonly #probes = new Map<Admission, number>()
  /** When it last admitted a call. */
  #usedAt: number
  /** When the first good byte came after it was open. */
  #goodAt: number | undefined
  /** Calls since then in the current step. */
  #step = 0
  #started = 0

  /** `successes`: how many calls before the first one have succeeded. */
  constructor(settings: Breaker, now: number, successes = 0) {
    this.#settings = settings
    this.#usedAt = now
    this.#outcomes = Array.from({ length: Math.min(successes, settings.lastCalls) }, () => false)
  }

  stateAt(now: number): State {
    const isClosed = this.#goodAt !== undefined && now - this.#goodAt >= steps.length * stepMs
    return this.#state === "half open" && isClosed ? "closed" : this.#state
  }

  /** How many times it has opened without having closed since. */
  get openings(): number {
    return this.#openings
  }

  /** When it last admitted a call. */
  get usedAt(): number {
    return this.#usedAt
  }

  /** `-Infinity` unless it is open. */
  get openUntil(): number {
    return this.#state === "open" ? this.#openUntil : Number.NEGATIVE_INFINITY
  }

  /** Whether it is closed and has no failure among its last calls. */
  isSound(now: number): boolean {
    return this.stateAt(now) === "closed" && this.#failures === 0
  }

  /** Admits a call, or returns the time until the next one may be admitted. `usualMs`: how long answers take, if known. */
  admit(now: number, usualMs: number): Admission | number {
    this.#usedAt = now
    this.#settle(now)
    if (this.#state === "closed") return { generation: this.#generation, isProbe: false }
    if (this.#state === "open") {
      if (now < this.#openUntil) return this.#openUntil - now
      this.#state = "half open"
      this.#generation++
    }
    const refusal = this.#goodAt === undefined ? this.#refuseProbe(now, usualMs) : this.#refuseStep(now, this.#goodAt)
    if (refusal !== undefined) return refusal
    const admission = { generation: this.#generation, isProbe: this.#goodAt === undefined }
    if (admission.isProbe) this.#probes.set(admission, now)
    return admission
  }

  /** Records the outcome of a call. `restMs`: how long the provider wants no calls. */
  record(admission: Admission, outcome: Outcome, now: number, restMs = 0): void {
    this.#probes.delete(admission)
    this.#settle(now)
    if (admission.generation !== this.#generation || this.#state === "open") return
    if (this.#state === "closed") return this.#count(outcome, now, restMs)
    if (outcome === "failure") this.open(now, restMs)
    else if (outcome === "success") this.#goodAt ??= now
  }

  /** Opens the circuit, for longer each time that it has not closed in between. `openings`: how many times others have opened. */
  open(now: number, restMs = 0, openings = 0): void {
    const { maxOpenMs, openMs } = this.#settings
    this.#openings = Math.max(this.#openings, openings)
    this.#openUntil = now + Math.max(restMs, Math.min(openMs * 2 ** this.#openings, maxOpenMs))
    this.#openings++
    this.#generation++
    this.#goodAt = undefined
    this.#probes.clear()
    this.#state = "open"
  }

  /** Closes the circuit if its last step is over. */
  #settle(now: number): void {
    if (this.#state === "closed" || this.stateAt(now) !== "closed") return
    this.#state = "closed"
    this.#generation++
    this.#openings = 0
    this.#goodAt = undefined
    this.#outcomes = []
    this.#failures = 0
  }

  #count(outcome: Outcome, now: number, restMs: number): void {
    if (outcome === "neither") return
    const { failureRate, lastCalls, minimumCalls } = this.#settings
    const isFailure = outcome === "failure"
    this.#outcomes.push(isFailure)
    if (isFailure) this.#failures++
    if (this.#outcomes.length > lastCalls && this.#outcomes.shift() === true) this.#failures--
    const { length } = this.#outcomes
    // a success must not open the circuit, even if it completes the minimum number of calls
    if (isFailure && length >= minimumCalls && this.#failures >= failureRate * length) this.open(now, restMs)
  }

  /** While each running probe has lasted as long as an answer usually does, one more may run. */
  #refuseProbe(now: number, usualMs: number): number | undefined {
    if (this.#probes.size === 0) return undefined
    const latest = Math.max(...this.#probes.values())
    const nextAt = this.#probes.size < mostProbes ? latest + usualMs : Number.POSITIVE_INFINITY
    return now >= nextAt ? undefined : Math.min(probingMs, nextAt - now)
  }

  #refuseStep(now: number, goodAt: number): number | undefined {
    const step = Math.floor((now - goodAt) / stepMs)
    if (step !== this.#step) this.#started = 0
    this.#step = step
    return this.#started++ < (steps[step] ?? Number.POSITIVE_INFINITY)
      ? undefined
      : (step + 1) * stepMs - (now - goodAt)
  }
}
