/** The report of a check of an ended simulation, and functions that checks share. */
import { inlineBodyBytes } from "../../shared/bus/protocol/Timings.ts"
import type { Client } from "./gateway/Client.ts"
import { workerBodyBytes } from "./gateway/Processes.ts"
import { endOf, warmUpMs } from "./Scenario.ts"
import type { Ended } from "./Simulation.ts"

export interface Violation {
  readonly invariant: string
  readonly detail: string
  /** The request that violates the invariant. */
  readonly request?: number
}

export type Check = (ended: Ended) => Generator<Violation>

export const named = (invariant: string, { request: { request } }: Client, detail: string): Violation => ({
  invariant,
  detail: `request ${request}: ${detail}`,
  request
})

/** How long a fault may affect requests after its end, in milliseconds: redelivery, silences and elections. */
const aftermathMs = 15_000

/** Whether a fault may have affected what happened in this period. */
export const isTouched = (scenario: Ended["scenario"], from: number, until: number): boolean =>
  scenario.faults.some((fault) => fault.at <= until && endOf(scenario, fault) + aftermathMs >= from) ||
  (scenario.weather ?? []).some((bad) => bad.from <= until && bad.until + aftermathMs >= from)

/** How much longer than the warm-up an ingress may take to start without a fault, in milliseconds. */
const startMs = 5_000

/** Whether an ingress may still be starting: its request may reach a server that does not know a new stream's leader yet. */
export const mayBeStarting = (at: number): boolean => at < warmUpMs + startMs

/** Whether a client's job runs at a worker at this time. */
export const runs = ({ claimedAt, endedAt }: Client, at: number): boolean =>
  claimedAt !== undefined && claimedAt <= at && (endedAt === undefined || endedAt > at)

/** The interval between observations of the slots, in milliseconds. */
const stepMs = 100

/** The times of observations in a period. */
export const stepsOf = (from: number, until: number): ReadonlyArray<number> =>
  Array.from({ length: Math.floor((until - from) / stepMs) }, (_, at) => from + at * stepMs)

/** From when on every worker has room for a request's body, even if it holds all other large bodies, in milliseconds of the world. */
export const roomAt = (clients: ReadonlyArray<Client>, client: Client): number => {
  const { request: { at, bodyBytes } } = client
  if (bodyBytes <= inlineBodyBytes) return at
  const others = clients.filter((other) => other !== client && other.request.bodyBytes > inlineBodyBytes)
  const held = (at: number) => others.reduce((sum, other) => runs(other, at) ? sum + other.request.bodyBytes : sum, 0)
  const ends = others.flatMap(({ endedAt = 0 }) => endedAt > at ? [endedAt] : []).toSorted((a, b) => a - b)
  return [at, ...ends].find((at) => held(at) === 0 || held(at) + bodyBytes <= workerBodyBytes) ?? at
}
