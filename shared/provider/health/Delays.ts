/** Whose calls to which targets a worker delays or rejects, and why, for operators. */
import type { Quota } from "../../contract/JobError.ts"

export interface TargetDelay {
  readonly provider: string
  /** The model's name at the provider. */
  readonly model: string
  /** `null` for all owners. */
  readonly owner: string | null
  /** `refusals`: the provider has answered 429. `failures`: its circuit is open, or half open. */
  readonly cause: "refusals" | "failures"
  /** How long no call is sent, in milliseconds; 0 if calls are sent again, at a limited rate. */
  readonly forMs: number
  /** How many calls are sent; `null` if their number is not limited. */
  readonly perMinute: number | null
  readonly waiting: number
  /** What the provider's latest 429 said about its limits. */
  readonly quota?: Quota
}

/** Maximum number of delays that a worker tells: those that last longest. */
const most = 50

/** Those of all owners first, then those that last longest. */
export const byImportance = (
  a: Pick<TargetDelay, "forMs" | "owner">,
  b: Pick<TargetDelay, "forMs" | "owner">
): number => Number(a.owner !== null) - Number(b.owner !== null) || b.forMs - a.forMs

/** The delays to show of all that there are. */
export const shown = (delays: ReadonlyArray<TargetDelay>): ReadonlyArray<TargetDelay> =>
  delays.toSorted(byImportance).slice(0, most)
