/** Why a candidate was passed over without being called: its limits are used up, it rests, or it had its share of retries. */
import { type JobError, ProviderFailed, ProviderRateLimited } from "../../contract/JobError.ts"

export class Passed {
  readonly _tag = "Passed"
  readonly reason: "busy" | "resting" | "retries"
  /** When it would take a request, in milliseconds from now. */
  readonly retryAfterMs: number

  constructor(reason: Passed["reason"], retryAfterMs: number) {
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }

  /** What the client is told where nobody else was called either. */
  toError(provider: string): JobError {
    const { reason, retryAfterMs } = this
    return reason === "busy"
      ? new ProviderRateLimited({ provider, retryAfterMs })
      : new ProviderFailed({ provider, reason: "resting", status: null, retryAfterMs })
  }
}
