/** What a seed means: the processes, the requests and the faults of one simulation, as plain values that can be shrunk. */
import type { Request } from "./gateway/Client.ts"
import { knownFaultKinds, mostElectionMs, type NatsFaultKind, natsFaultKinds } from "./nats/Faults.ts"
import { Random } from "./world/Random.ts"

export const processFaultKinds = [
  "kill worker",
  "deploy worker",
  "freeze worker",
  "hold worker",
  "cut worker",
  "slow worker",
  "clock of worker",
  "kill ingress",
  "freeze ingress",
  "hold ingress",
  "cut ingress",
  "clock of ingress"
] as const
export type FaultKind = typeof processFaultKinds[number] | NatsFaultKind

export const isNatsFault = (kind: FaultKind): kind is NatsFaultKind =>
  !(processFaultKinds as ReadonlyArray<string>).includes(kind)

/** Whether faults occur that the gateway is known not to survive. */
const hasKnown = process.env["SIMULATE_KNOWN"] === "1"

const faultKinds: ReadonlyArray<FaultKind> = [
  ...processFaultKinds,
  ...natsFaultKinds,
  ...(hasKnown ? knownFaultKinds : [])
]

export interface Fault {
  readonly kind: FaultKind
  /** In milliseconds of the world. */
  readonly at: number
  /** Which of those that live by then. */
  readonly target: number
  /** How long it lasts, or until a replacement starts, or how far a clock is set forward or back, in milliseconds. */
  readonly ms: number
  /** Strikes only when the process writes this: right before, so that it is lost if connections are, or right after. */
  readonly moment: { readonly text: string; readonly isBefore: boolean } | undefined
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

/** Nothing starts before, so that all processes are ready. */
export const warmUpMs = 3_000

/** Requests start within this time, in milliseconds; faults too. */
export const activeMs = 20_000

/** Without a fault no request waits for long with so many slots in all. */
const leastSlots = 40

/** How long a fault waits for its moment. */
export const momentMs = 3_000

/** Parts of messages: pull requests, claims, frames, ends, acknowledgements, usage events; jobs and controls. */
const moments = {
  worker: [
    "MSG.NEXT",
    "Gw-Frame: claims",
    "Gw-Frame: claim ",
    "PUB r.chat",
    "Gw-Frame: data",
    "+ACK",
    "+WPI",
    "PUB usage",
    "heartbeat"
  ],
  ingress: ["PUB jobs.", "Gw-Ctl: go", "Gw-Ctl: credit", "Gw-Ctl: cancel", "Gw-Ctl: ping"]
} as const

/** When a fault no longer acts by itself: servers may still elect leaders after its end. */
export const endOf = ({ servers }: Pick<Scenario, "servers">, { at, kind, moment, ms }: Fault): number =>
  at + (moment === undefined ? 0 : momentMs) + (kind.startsWith("clock") ? 0 : ms) +
  (isNatsFault(kind) && servers > 1 ? mostElectionMs : 0)

const faultOf = (random: Random, at: number, kind: FaultKind): Fault => {
  const [, process] = /(worker|ingress)$/.exec(kind) ?? []
  const texts = process === undefined || kind.startsWith("clock") ? [] : moments[process as keyof typeof moments]
  const isShort = random.chance(0.4)
  return {
    kind,
    at,
    target: random.integer(0, 9),
    ms: kind.startsWith("clock")
      ? random.between(-30_000, 30_000)
      : isShort
      ? random.between(50, 600)
      : random.between(600, 9_000),
    moment: texts.length > 0 && random.chance(0.6)
      ? { text: random.pick(texts), isBefore: random.chance(0.5) }
      : undefined
  }
}

export const scenarioOf = (seed: number, mostRequests = 200): Scenario => {
  const random = new Random(seed)
  const servers = random.chance(0.6) ? 1 : 3
  const faults = Array.from(
    { length: random.chance(0.1) ? 0 : random.integer(1, 8) },
    () => faultOf(random, warmUpMs + random.between(0, activeMs), random.pick(faultKinds))
  )
  const count = random.integer(Math.ceil(mostRequests / 4), mostRequests)
  // half of the requests come just before a fault or together
  const bursts = [...faults.map(({ at }) => at), warmUpMs + random.between(0, activeMs)]
  const requests = Array.from({ length: count }, (_, request): Request => {
    const isLong = random.chance(0.3)
    return {
      request,
      at: random.chance(0.5)
        ? Math.max(warmUpMs, random.pick(bursts) - random.between(0, 1_000))
        : warmUpMs + random.between(0, activeMs),
      isPaid: random.chance(0.6),
      tenant: `key_${random.integer(1, 3)}`,
      patienceMs: random.between(10_000, 30_000),
      bodyBytes: random.chance(0.05) ? random.integer(20_000, 700_000) : random.integer(80, 400),
      chunks: isLong ? random.integer(10, 40) : random.integer(1, 5),
      everyMs: isLong ? random.between(20, 250) : random.between(1, 30),
      chunkBytes: random.chance(0.05) ? random.integer(10_000, 200_000) : 64,
      leavesAfterMs: random.chance(0.08) ? random.between(1, 2_000) : undefined,
      readMs: random.chance(0.1) ? random.between(1, 200) : 0
    }
  })
  const workers = random.integer(1, 4)
  return {
    seed,
    servers,
    ingresses: random.integer(1, 3),
    workers,
    slots: Math.ceil(random.integer(leastSlots, 2 * leastSlots) / workers),
    requests,
    faults: faults.toSorted((a, b) => a.at - b.at)
  }
}
