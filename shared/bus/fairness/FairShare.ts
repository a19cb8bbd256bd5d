/**
 * Decides which tenants may take another slot of a pool: weighted max-min fairness, with a reserve for tenants with few slots.
 *
 * While others wait, a tenant takes no slot beyond its weighted share. The slots that it does not ask for are divided among the
 * others, so no slot outside the reserve stays idle while a job waits. The reserve is an eighth of the slots, at most 32. A tenant
 * may use it only while it has fewer slots than are free, so the reserve goes to newcomers, and the first of them cannot exhaust it.
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
}

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
 * only taken slots count as demand, not waiting jobs.
 */
export const shareOf = (room: number, tenants: Iterable<TenantDemand>, priority: PriorityClass): number => {
  const demands: Array<{ readonly weight: number; readonly units: number }> = []
  let left = room
  let asked = 0
  let weights = 0
  for (const tenant of tenants) {
    const counts = urgency[tenant.priority] <= urgency[priority]
    const units = tenant.taken + (counts ? tenant.waiting : 0)
    if (units === 0) continue
    demands.push({ weight: tenant.weight, units })
    asked += units
    weights += tenant.weight
  }
  if (asked <= room) return Number.POSITIVE_INFINITY
  demands.sort((a, b) => a.units / a.weight - b.units / b.weight)
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
