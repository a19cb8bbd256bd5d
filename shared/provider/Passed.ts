/** Why a candidate was passed over without being called: its limits are used up, it rests, or it had its share of retries. */
export class Passed {
  readonly _tag = "Passed"
  readonly reason: "busy" | "resting" | "retries"
  /** When it would take a request, in milliseconds from now. */
  readonly retryAfterMs: number

  constructor(reason: Passed["reason"], retryAfterMs: number) {
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }
}
