/**
 * Compares the providers' bills with the usage events, request by request. A request is identified by its trace, whose id its calls
 * and its event carry.
 *
 * A request's usage must equal the bills of its calls in every unit. If its bill cannot be known, its event says so, and the usage
 * lies between the bill of an answer that was complete and the sum of all its calls.
 */
import { isOfLostWorker, type UsageEvent } from "../../../shared/usage/UsageEvent.ts"
import { addUnits, type BillUnits, billUnits, noUnits, unitsOf } from "../../fixture/provider/answers/Bill.ts"

export interface BilledCall {
  /** The trace of its request. */
  readonly request: string
  readonly units: BillUnits
  /** Whether the provider has sent the whole answer. */
  readonly isWhole: boolean
}

/** Why the bill of a request cannot be known. */
const reasons = [
  "its worker was lost, and no other knows",
  "its worker was lost, and another repeated it",
  "a call was cut and followed by another",
  "its client left, or it was not repeated",
  "its answer was cut"
] as const
export type Reason = typeof reasons[number]

/** A request whose usage differs from its bill because the bill cannot be known. */
export interface Difference {
  readonly request: string
  readonly reason: Reason
  readonly billed: BillUnits
  readonly metered: BillUnits
  readonly event: UsageEvent
}

/** A request whose usage the gateway has estimated, in part or whole. */
export interface Estimate extends Difference {
  readonly estimatedTokens: number
}

export interface Reconciliation {
  readonly requests: number
  readonly calls: number
  /** Requests whose usage equals their bill. */
  readonly equal: number
  readonly billed: BillUnits
  /** Of that, the bills of requests whose usage is equal. */
  readonly billedEqual: BillUnits
  readonly metered: BillUnits
  readonly differences: ReadonlyArray<Difference>
  readonly estimates: ReadonlyArray<Estimate>
  /** Descriptions of errors. */
  readonly wrong: ReadonlyArray<string>
}

const sumOf = (all: ReadonlyArray<BillUnits>): BillUnits => all.reduce(addUnits, noUnits)
const isAtMost = (one: BillUnits, other: BillUnits): boolean => billUnits.every((unit) => one[unit] <= other[unit])
const isEqual = (one: BillUnits, other: BillUnits): boolean => isAtMost(one, other) && isAtMost(other, one)
export const tokensOf = ({ inputTokens, outputTokens }: BillUnits): number => inputTokens + outputTokens

/** The units of a bill in an event. */
export const unitsIn = ({ usage }: UsageEvent): BillUnits => unitsOf((unit) => usage?.[unit] ?? 0)

const reasonOf = (event: UsageEvent, calls: ReadonlyArray<BilledCall>): Reason | undefined => {
  if (isOfLostWorker(event)) return reasons[0]
  if (calls.length > event.attempts) return reasons[1]
  if ((event.repeatedCalls ?? 0) > 0) return reasons[2]
  if (event.outcome === "cancelled") return reasons[3]
  return event.outcome === "failure" ? reasons[4] : undefined
}

/** The minimum usage of a request's event: if the request was answered, the bill of a complete call. */
const leastOf = ({ outcome }: UsageEvent, calls: ReadonlyArray<BilledCall>): BillUnits => {
  const whole = calls.filter(({ isWhole }) => isWhole)
  if (outcome !== "success" || whole.length === 0) return noUnits
  return unitsOf((unit) => Math.min(...whole.map(({ units }) => units[unit])))
}

const show = (units: BillUnits): string =>
  billUnits.filter((unit) => units[unit] > 0).map((unit) => `${units[unit]} ${unit}`).join(", ") || "nothing"

const groupBy = <A>(all: ReadonlyArray<A>, keyOf: (one: A) => string): Map<string, Array<A>> => {
  const groups = new Map<string, Array<A>>()
  for (const one of all) {
    const key = keyOf(one)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  return groups
}

/** `requestOf` names an event's request as `BilledCall.request` does. */
export const reconcile = (
  calls: ReadonlyArray<BilledCall>,
  events: ReadonlyArray<UsageEvent>,
  requestOf: (event: UsageEvent) => string
): Reconciliation => {
  const callsOf = groupBy(calls, ({ request }) => request)
  const eventsOf = groupBy(events, requestOf)
  const [differences, estimates, wrong]: [Array<Difference>, Array<Estimate>, Array<string>] = [[], [], []]
  let equal = 0
  let billedEqual = noUnits
  const requests = new Set([...callsOf.keys(), ...eventsOf.keys()])
  for (const request of requests) {
    const own = callsOf.get(request) ?? []
    const [event, ...others] = eventsOf.get(request) ?? []
    const billed = sumOf(own.map(({ units }) => units))
    const metered = event === undefined ? noUnits : unitsIn(event)
    const tell = (what: string) => {
      const calls = own.map(({ isWhole, units }) => `${show(units)}${isWhole ? "" : " (cut)"}`).join("; ")
      wrong.push(`${what}: request ${request}, ${own.length} calls (${calls}), ${JSON.stringify(event)}`)
    }
    if (others.length > 0) {
      tell(`${others.length + 1} events`)
      continue
    }
    const estimatedTokens = event?.usage?.estimatedTokens ?? 0
    if (isEqual(billed, metered) && estimatedTokens === 0) {
      equal++
      billedEqual = addUnits(billedEqual, billed)
      continue
    }
    if (event === undefined) {
      tell("billed without an event")
      continue
    }
    const reason = reasonOf(event, own)
    if (reason === undefined) {
      tell("unexplained")
      continue
    }
    const difference = { request, reason, billed, metered, event }
    if (estimatedTokens > 0) {
      estimates.push({ ...difference, estimatedTokens })
      continue
    }
    if (!isAtMost(metered, billed)) tell("more usage than was billed")
    else if (!isAtMost(leastOf(event, own), metered)) tell("less usage than one complete answer")
    else differences.push(difference)
  }
  return {
    requests: requests.size,
    calls: calls.length,
    equal,
    billed: sumOf(calls.map(({ units }) => units)),
    billedEqual,
    metered: sumOf(events.map(unitsIn)),
    differences,
    estimates,
    wrong
  }
}
