/** What a check of an ended simulation reports, and what checks share. */
import type { Client } from "./gateway/Client.ts"
import { endOf } from "./Scenario.ts"
import type { Ended } from "./Simulation.ts"

export interface Violation {
  readonly invariant: string
  readonly detail: string
  /** The request that it concerns. */
  readonly request?: number
}

export type Check = (ended: Ended) => Generator<Violation>

export const named = (invariant: string, { request: { request } }: Client, detail: string): Violation => ({
  invariant,
  detail: `request ${request}: ${detail}`,
  request
})

/** How long a fault may act on requests after it has ended: redelivery, silences and elections. */
const aftermathMs = 15_000

/** Whether a fault may have acted on what happened in this time. */
export const isTouched = (scenario: Ended["scenario"], from: number, until: number): boolean =>
  scenario.faults.some((fault) => fault.at <= until && endOf(scenario, fault) + aftermathMs >= from) ||
  (scenario.weather ?? []).some((bad) => bad.from <= until && bad.until + aftermathMs >= from)
