/** What a seed means: the processes, the requests and the faults of one simulation, as plain values that can be shrunk. */
import type { Request } from "./gateway/Client.ts"
import { Random } from "./world/Random.ts"

export type Fault =
  | {
    readonly kind: "kill worker" | "kill ingress" | "deploy worker"
    readonly at: number
    readonly target: number
    readonly backAfterMs: number
  }
  | {
    readonly kind: "freeze worker" | "freeze ingress" | "freeze nats"
    readonly at: number
    readonly target: number
    readonly forMs: number
  }
  | { readonly kind: "kill nats"; readonly at: number; readonly target: number; readonly backAfterMs: number }
  | {
    readonly kind: "hold worker" | "hold ingress" | "slow worker" | "cut worker" | "cut ingress"
    readonly at: number
    readonly target: number
    readonly forMs: number
  }
  | {
    readonly kind: "clock of worker" | "clock of ingress"
    readonly at: number
    readonly target: number
    readonly byMs: number
  }

export interface Scenario {
  readonly seed: number
  readonly servers: number
  readonly ingresses: number
  readonly workers: number
  readonly slots: number
  readonly requests: ReadonlyArray<Request>
  readonly faults: ReadonlyArray<Fault>
}

/** Requests start within this time, in milliseconds; faults too. */
export const activeMs = 20_000

/** Nothing starts before, so that all processes are ready. */
export const warmUpMs = 3_000

const faultKinds = [
  "kill worker",
  "kill ingress",
  "deploy worker",
  "freeze worker",
  "freeze ingress",
  "freeze nats",
  "kill nats",
  "hold worker",
  "hold ingress",
  "cut worker",
  "cut ingress",
  "slow worker",
  "clock of worker",
  "clock of ingress"
] as const

const faultOf = (random: Random, at: number, kind: Fault["kind"]): Fault => {
  const target = random.integer(0, 9)
  switch (kind) {
    case "kill worker":
    case "kill ingress":
    case "deploy worker":
    case "kill nats":
      return { kind, at, target, backAfterMs: random.between(200, 4_000) }
    case "clock of worker":
    case "clock of ingress":
      return { kind, at, target, byMs: random.between(-30_000, 30_000) }
    default:
      return { kind, at, target, forMs: random.chance(0.3) ? random.between(50, 500) : random.between(500, 9_000) }
  }
}

/** When a fault no longer acts by itself. */
export const endOf = (fault: Fault): number =>
  fault.at + ("forMs" in fault ? fault.forMs : "backAfterMs" in fault ? fault.backAfterMs : 0)

export const scenarioOf = (seed: number, mostRequests = 200): Scenario => {
  const random = new Random(seed)
  const servers = random.chance(0.6) ? 1 : 3
  const count = random.integer(Math.ceil(mostRequests / 4), mostRequests)
  const requests = Array.from({ length: count }, (_, request): Request => {
    const isLong = random.chance(0.15)
    return {
      request,
      at: warmUpMs + random.between(0, activeMs),
      isPaid: random.chance(0.6),
      tenant: `key_${random.integer(1, 3)}`,
      patienceMs: random.between(10_000, 30_000),
      bodyBytes: random.chance(0.05) ? random.integer(20_000, 700_000) : random.integer(80, 400),
      chunks: isLong ? random.integer(10, 40) : random.integer(1, 5),
      everyMs: isLong ? random.between(20, 150) : random.between(1, 30),
      chunkBytes: random.chance(0.05) ? random.integer(10_000, 200_000) : 64,
      leavesAfterMs: random.chance(0.08) ? random.between(1, 2_000) : undefined,
      readMs: random.chance(0.1) ? random.between(1, 200) : 0
    }
  })
  const faults = Array.from(
    { length: random.chance(0.1) ? 0 : random.integer(1, 6) },
    () => faultOf(random, warmUpMs + random.between(0, activeMs), random.pick(faultKinds))
  )
  return {
    seed,
    servers,
    ingresses: random.integer(1, 3),
    workers: random.integer(2, 4),
    slots: random.integer(4, 12),
    requests,
    faults: faults.toSorted((a, b) => a.at - b.at)
  }
}
