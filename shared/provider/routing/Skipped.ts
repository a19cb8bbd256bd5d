/** Why a candidate was skipped: limits reached, circuit open, or retry budget used up. */
import { Data } from "effect"
import { type JobError, ProviderFailed, ProviderRateLimited } from "../../contract/JobError.ts"

export class Skipped extends Data.TaggedClass("Skipped")<{
  readonly reason: "busy" | "resting" | "retries"
  /** Time until the candidate may take a request, in milliseconds. */
  readonly retryAfterMs: number
}> {
  /** The client's error if all other candidates were skipped, too. */
  toError(provider: string): JobError {
    const { reason, retryAfterMs } = this
    return reason === "busy"
      ? new ProviderRateLimited({ provider, retryAfterMs })
      : new ProviderFailed({ provider, reason: "resting", retryAfterMs })
  }
}
