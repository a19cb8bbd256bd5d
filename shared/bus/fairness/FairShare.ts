/**
 * Decides which tenants may take another slot of a pool, and for which of their models: weighted max-min fairness, with a reserve for
 * tenants with few slots.
 *
 * While others wait, a tenant takes no slot beyond its weighted share. The slots that it does not ask for are divided among the
 * others, so no slot outside the reserve stays idle while a job waits. The reserve is an eighth of the slots, at most 32. A tenant
 * may use it only while it has fewer slots than are free, so the reserve goes to newcomers, and the first of them cannot exhaust it.
 *
 * A slot that is lent to a slow request is missing for as long as that takes. So what a tenant has wanted in the last seconds counts as
 * its demand, as far as these slots, of all tenants together, are no more than the reserve.
 *
 * A tenant's models divide its share in the same way, so that a model whose provider is slow leaves slots to the others. While no
 * other tenant's job waits, a model may use the reserve as a tenant does.
 */
import type { PriorityClass } from "../../contract/PriorityClass.ts"

/** A tenant's taken slots and waiting jobs in a pool. */
export interface TenantDemand {
  /** At least 1. */
  readonly weight: number
  readonly priority: PriorityClass
  /** Jobs that are claimed or published. */
  readonly taken: number
  /** Jobs that wait for their turn at ingress. */
  readonly waiting: number
  /** How many jobs more there were recently. Default: none. */
  readonly fewer?: number
}

/** The taken slots and waiting jobs of one of a tenant's models. */
export type ModelDemand = Pick<TenantDemand, "taken" | "waiting" | "fewer">

const urgency: Readonly<Record<PriorityClass, number>> = { interactive: 0, standard: 1, batch: 2 }

/** The largest reserve, in slots: enough for newcomers at one moment, however large the pool is. Each then gets a share. */
const largestReserve = 32

/** A pool of fewer than eight slots has no reserve. */
export const reserveOf = (slots: number): number => Math.min(largestReserve, Math.floor(slots / 8))

/**
 * How many jobs may be taken before only the reserve is left. Without a reserve, one extra job waits in the stream for the next
 * free slot, which would otherwise stay idle for a round trip.
 */
export const roomOf = (slots: number): number => {
  const reserve = reserveOf(slots)
  return reserve === 0 ? slots + 1 : slots - reserve
}

/**
 * The share, in slots, of a tenant of weight 1 in this class; `Infinity` if all demand fits into `room`. Of less urgent classes,
 * only taken slots count as demand, not waiting jobs. `kept`: how many slots are kept for those who had more jobs recently.
 */
export const shareOf = (
  room: number,
  tenants: Iterable<TenantDemand>,
  priority: PriorityClass,
  kept = 0
): number => {
  const demands: Array<Demand> = []
  for (const { fewer = 0, priority: own, taken, waiting, weight } of tenants) {
    const counts = urgency[own] <= urgency[priority]
    const demand = { weight, units: taken + (counts ? waiting : 0), fewer: counts ? fewer : 0 }
    if (demand.units + demand.fewer > 0) demands.push(demand)
  }
  return levelOf(room, demands, kept)
}

/** The share, in slots, of each of a tenant's models; `Infinity` if their demand fits into the tenant's `slots`. */
export const modelShareOf = (slots: number, models: Iterable<ModelDemand>, kept = 0): number => {
  const demands: Array<Demand> = []
  for (const { fewer = 0, taken, waiting } of models) demands.push({ weight: 1, units: taken + waiting, fewer })
  return levelOf(slots, demands, kept)
}

interface Demand {
  readonly weight: number
  units: number
  readonly fewer: number
}

const byUnits = (a: Demand, b: Demand): number => a.units / a.weight - b.units / b.weight

/** The units for each unit of weight, if those who ask for less leave the rest to the others; `Infinity` if all fit into `room`. */
const levelOf = (room: number, demands: Array<Demand>, kept: number): number => {
  let asked = 0
  let weights = 0
  let fewer = 0
  for (const demand of demands) {
    asked += demand.units
    weights += demand.weight
    fewer += demand.fewer
  }
  if (asked + Math.min(fewer, kept) <= room) return Number.POSITIVE_INFINITY
  demands.sort(byUnits)
  if (fewer > 0 && kept > 0) {
    // those with the fewest jobs first: the others would not get more slots than their share anyway
    let rest = kept
    for (const demand of demands) {
      const more = Math.min(demand.fewer, rest)
      demand.units += more
      rest -= more
    }
    demands.sort(byUnits)
  }
  let left = room
  for (const { units, weight } of demands) {
    const share = left / weights
    if (units > share * weight) return share
    left -= units
    weights -= weight
  }
  return Number.POSITIVE_INFINITY
}

/** The current use of a pool. */
export interface PoolUse {
  readonly slots: number
  /** Slots taken by all tenants. */
  readonly taken: number
  /** From `shareOf`. */
  readonly share: number
  /** How many ingresses may take a slot concurrently. */
  readonly ingresses: number
}

/** Whether a tenant may take another slot. */
export const mayTake = (
  tenant: Pick<TenantDemand, "taken" | "weight">,
  { ingresses, share, slots, taken }: PoolUse
): boolean =>
  tenant.taken < share * tenant.weight &&
  (taken < roomOf(slots) || tenant.taken < (slots - taken) / ingresses)

/** Whether a model with so many slots may take another from the reserve. */
export const mayTakeReserved = (
  modelTaken: number,
  { ingresses, slots, taken }: Pick<PoolUse, "ingresses" | "slots" | "taken">
): boolean => modelTaken < Math.min(slots - taken, reserveOf(slots)) / ingresses
