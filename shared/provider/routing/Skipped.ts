/** Why a candidate was skipped: limits reached, circuit open, or retry budget used up. */
import { Data } from "effect"
import { type JobError, ProviderFailed, ProviderRateLimited } from "../../contract/JobError.ts"

export class Skipped extends Data.TaggedClass("Skipped")<{
  readonly reason: "busy" | "resting" | "retries"
  /** The time until the candidate may accept a call, in milliseconds. */
  readonly retryAfterMs: number
}> {
  /** The error for the client if all candidates were skipped. */
  toError(provider: string): JobError {
    const { reason, retryAfterMs } = this
    return reason === "busy"
      ? new ProviderRateLimited({ provider, retryAfterMs })
      : new ProviderFailed({ provider, reason: "resting", retryAfterMs })
  }
}
