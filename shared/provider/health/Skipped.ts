/** Why a candidate was skipped: limits reached or unknown, circuit open, or retry budget used up. */
import { Data } from "effect"
import { type JobError, LimitsUnavailable, ProviderFailed, ProviderRateLimited } from "../../contract/JobError.ts"

export class Skipped extends Data.TaggedClass("Skipped")<{
  /** `unknown`: the provider's limits cannot be read, so they may be reached. */
  readonly reason: "busy" | "unknown" | "resting" | "retries"
  /** The time until the candidate may accept a call, in milliseconds. */
  readonly retryAfterMs: number
}> {
  /** Whether only units of limits, or the provider's pace, were missing. */
  get isBusy(): boolean {
    return this.reason === "busy" || this.reason === "unknown"
  }

  /** The error for the client if all candidates were skipped. */
  toError(provider: string): JobError {
    const { reason, retryAfterMs } = this
    switch (reason) {
      case "busy":
        return new ProviderRateLimited({ provider, retryAfterMs })
      case "unknown":
        return new LimitsUnavailable({ limit: `The provider '${provider}' has limits`, retryAfterMs })
      default:
        return new ProviderFailed({ provider, reason: "resting", retryAfterMs })
    }
  }
}
