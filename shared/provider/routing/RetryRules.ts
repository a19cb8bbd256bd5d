/** The rules for what may follow a failed call, by its error: the same target again, other targets, or nothing. */
import { type JobError, mayBeBilled, type ProviderFailed, type ProviderTimeout } from "../../contract/JobError.ts"
import { isIdempotent } from "../../catalogue/Provider.ts"
import * as ProviderError from "../exchange/ProviderError.ts"
import { type Endpoint, isConfigured } from "../transport/Endpoint.ts"

export interface RetryRule {
  /**
   * When the same target may be called again: before every other target, because its cache may hold the prompt; after every
   * other target; or never.
   */
  readonly sameTarget: "first" | "last" | "never"
  /** Which other targets may be called. */
  readonly otherTargets: "all" | "larger context" | "none"
}

/** A short failure, probably over by the time of a retry. */
const brief: RetryRule = { sameTarget: "first", otherTargets: "all" }
/** Another call to the same target would take as long, or fail again. */
const lasting: RetryRule = { sameTarget: "last", otherTargets: "all" }
/** Only another provider can help. */
const ofProvider: RetryRule = { sameTarget: "never", otherTargets: "all" }
const tooLong: RetryRule = { sameTarget: "never", otherTargets: "larger context" }
/** Every other provider would fail, too. */
const final: RetryRule = { sameTarget: "never", otherTargets: "none" }

const failures: Readonly<Record<ProviderFailed["reason"], RetryRule>> = {
  status: brief,
  error: brief,
  cut: brief,
  malformed: lasting,
  unreachable: lasting,
  resting: lasting,
  credentials: ofProvider,
  credit: ofProvider,
  unconfirmed: ofProvider,
  result: ofProvider
}

/**
 * A call that may be billed and has taken as long as the defaults allow is not repeated anywhere. An operator who sets a shorter limit
 * wants another target's answer instead; the same one would take as long, and be paid twice.
 */
const ofTimeout = (error: ProviderTimeout, endpoint: Endpoint): RetryRule => {
  if (!mayBeBilled(error) || isIdempotent(endpoint.provider)) return lasting
  return isConfigured(endpoint, error.phase) ? ofProvider : final
}

export const ruleOf = (error: JobError, endpoint: Endpoint): RetryRule => {
  switch (error._tag) {
    case "ProviderRateLimited":
      return brief
    case "ProviderFailed":
      return failures[error.reason]
    case "ProviderTimeout":
      return ofTimeout(error, endpoint)
    case "ProviderRejected":
      return ProviderError.exceedsContext(error) ? tooLong : final
    default:
      return final
  }
}

/** The rule while a broken-off answer is being continued: another target may accept what this one refuses. */
export const ruleToContinue = (error: JobError, wasSilent: boolean, endpoint: Endpoint): RetryRule => {
  if (error._tag === "Cancelled") return final
  const rule = ruleOf(error, endpoint)
  return wasSilent || error._tag === "ProviderTimeout" || rule === final ? ofProvider : rule
}
