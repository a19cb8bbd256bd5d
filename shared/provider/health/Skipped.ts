/** Why a candidate was skipped. */
import { Data } from "effect"
import { type JobError, LimitsUnavailable, ProviderFailed, ProviderRateLimited } from "../../contract/JobError.ts"

export class Skipped extends Data.TaggedClass("Skipped")<{
  /**
   * * `busy`: its limits are reached. `unknown`: they cannot be read, so they may be reached.
   * * `resting`: its circuit is open.
   * * `retries`: its retry budget is used up.
   * * `alone`: it has refused this request, but no others.
   * * `probed`: the call was to find out whether it accepts calls again, and it did not.
   */
  readonly reason: "busy" | "unknown" | "resting" | "retries" | "alone" | "probed"
  /** The time until the candidate may accept a call, in milliseconds. */
  readonly retryAfterMs: number
}> {
  /** Whether only units of limits, or the provider's pace, were missing. */
  get isBusy(): boolean {
    return this.reason === "busy" || this.reason === "unknown" || this.reason === "probed"
  }

  /** The error for the client if all candidates were skipped. */
  toError(provider: string): JobError {
    const { reason, retryAfterMs } = this
    switch (reason) {
      case "busy":
      case "probed":
        return new ProviderRateLimited({ provider, retryAfterMs })
      case "unknown":
        return new LimitsUnavailable({ limit: `The provider '${provider}' has limits`, retryAfterMs })
      default:
        return new ProviderFailed({ provider, reason: "resting", retryAfterMs })
    }
  }
}
