/** Failures that are the only one in some seeds, so that invariants can state their maximum cost. */
import { serverChangeWithinMs } from "../../shared/bus/protocol/Timings.ts"
import type { Outcome } from "./gateway/Client.ts"
import type { FaultKind } from "./Scenario.ts"

/** The maximum cost of a failure: the delay of answers in milliseconds, and the errors of requests. */
export interface Cost {
  readonly lateMs: number
  readonly outcomes?: ReadonlyArray<Outcome>
}

/** The maximum delay of an answer if nothing fails, in milliseconds: many clients may ask for large answers. */
export const usualMs = 2_000
/** The maximum delay while NATS servers elect leaders, in milliseconds. */
const electionMs = 12_000

/** The cost of each failure. If the failed process or server is the only one of its kind, the failure's length is added. */
export const costs = {
  "kill worker": { lateMs: 3_000, outcomes: ["WorkerLost"] },
  // calls that are longer than the worker's grace period
  "deploy worker": { lateMs: usualMs, outcomes: ["WorkerLost"] },
  // the only worker behind its server of NATS may be reconnecting
  "freeze worker": { lateMs: usualMs + serverChangeWithinMs, outcomes: ["WorkerLost"] },
  "hold worker": { lateMs: usualMs + serverChangeWithinMs, outcomes: ["WorkerLost"] },
  "cut worker": { lateMs: usualMs },
  "clock of worker": { lateMs: usualMs },
  "freeze ingress": { lateMs: usualMs },
  "hold ingress": { lateMs: usualMs },
  // until later jobs show that one is overtaken
  "cut ingress": { lateMs: 1_500 },
  "clock of ingress": { lateMs: usualMs },
  "kill nats": { lateMs: electionMs },
  "restart nats": { lateMs: electionMs },
  "freeze nats": { lateMs: electionMs },
  "cut nats": { lateMs: 4_000 },
  // the calls of the only worker behind that server
  "isolate nats": { lateMs: electionMs, outcomes: ["WorkerLost"] },
  "slow routes": { lateMs: 4_000 },
  "no stream leader": { lateMs: electionMs },
  "no consumer leader": { lateMs: electionMs },
  "lost confirmations": { lateMs: 4_000 },
  "consumer forgets pulls": { lateMs: 4_000 },
  // added to the time until the console has recreated the consumer; the queue looks slow until then
  "jobs forget newest": { lateMs: usualMs, outcomes: ["QueueTimeout"] },
  "jobs forget all": { lateMs: usualMs, outcomes: ["QueueTimeout"] },
  "usage forgets newest": { lateMs: usualMs }
} as const satisfies Partial<Record<FaultKind, Cost>>

export const drillKinds = Object.keys(costs) as ReadonlyArray<keyof typeof costs>
