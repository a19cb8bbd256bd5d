/** Failures that come alone in some seeds, so that invariants can say exactly what they may cost. */
import { serverChangeWithinMs } from "../../shared/bus/protocol/Timings.ts"
import type { Outcome } from "./gateway/Client.ts"
import type { FaultKind } from "./Scenario.ts"

/** What a failure may cost: how late answers come, in milliseconds, and what requests may fail with. */
export interface Cost {
  readonly lateMs: number
  readonly outcomes?: ReadonlyArray<Outcome>
}

/** How late an answer may be although nothing fails: while many clients ask for large ones. */
export const usualMs = 2_000
/** The same while servers of NATS elect leaders. */
const electionMs = 12_000

/** A process or server that is gone, or that another part cannot reach, costs the length of the failure if it is the only one. */
export const costs = {
  "kill worker": { lateMs: 3_000, outcomes: ["WorkerLost"] },
  // those that are longer than its grace
  "deploy worker": { lateMs: usualMs, outcomes: ["WorkerLost"] },
  // the only worker behind its server of NATS may be reconnecting
  "freeze worker": { lateMs: usualMs + serverChangeWithinMs, outcomes: ["WorkerLost"] },
  "hold worker": { lateMs: usualMs + serverChangeWithinMs, outcomes: ["WorkerLost"] },
  "cut worker": { lateMs: usualMs },
  "clock of worker": { lateMs: usualMs },
  "freeze ingress": { lateMs: usualMs },
  "hold ingress": { lateMs: usualMs },
  // before later jobs show that one is overtaken
  "cut ingress": { lateMs: 1_500 },
  "clock of ingress": { lateMs: usualMs },
  "kill nats": { lateMs: electionMs },
  "restart nats": { lateMs: electionMs },
  "freeze nats": { lateMs: electionMs },
  "cut nats": { lateMs: 4_000 },
  // of the only worker behind that server
  "isolate nats": { lateMs: electionMs, outcomes: ["WorkerLost"] },
  "slow routes": { lateMs: 4_000 },
  "no stream leader": { lateMs: electionMs },
  "no consumer leader": { lateMs: electionMs },
  "lost confirmations": { lateMs: 4_000 },
  "consumer forgets pulls": { lateMs: 4_000 },
  // after the console has recreated the consumer, without which the queue looks slow
  "jobs forget newest": { lateMs: usualMs, outcomes: ["QueueTimeout"] },
  "jobs forget all": { lateMs: usualMs, outcomes: ["QueueTimeout"] },
  "usage forgets newest": { lateMs: usualMs }
} as const satisfies Partial<Record<FaultKind, Cost>>

export const drillKinds = Object.keys(costs) as ReadonlyArray<keyof typeof costs>
