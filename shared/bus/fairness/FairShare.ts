/**
 * Decides which tenants may take another slot of a pool: weighted max-min fairness, with a reserve for tenants that have few.
 *
 * While others wait, a tenant takes no slot beyond its share. The share is weighted; what a tenant does not ask for is shared
 * out among the others, so no slot outside the reserve stays idle while a job waits. An eighth of the slots is the reserve: a
 * tenant takes of it only while it has fewer slots than are left free. So the reserve goes to newcomers, and the first of them
 * cannot empty it for the next.
 */
import type { PriorityClass } from "../../contract/PriorityClass.ts"

/** What a tenant has and wants of a pool. */
export interface TenantDemand {
  /** At least 1. */
  readonly weight: number
  readonly priority: PriorityClass
  /** Jobs in a worker's hands, or on their way there. */
  readonly taken: number
  /** Jobs that wait for their turn. */
  readonly waiting: number
}

const urgency: Readonly<Record<PriorityClass, number>> = { interactive: 0, standard: 1, batch: 2 }

/** A pool of fewer than eight slots has no reserve. */
export const reserveOf = (slots: number): number => Math.floor(slots / 8)

/**
 * How many jobs may be taken before only the reserve is left. Where there is none, one job lies ready for the next free slot,
 * which would otherwise stay idle for a round trip.
 */
export const roomOf = (slots: number): number => {
  const reserve = reserveOf(slots)
  return reserve === 0 ? slots + 1 : slots - reserve
}

/**
 * The share of a tenant of weight 1, as a tenant of this class sees it: jobs of less urgent classes count as far as they are
 * taken, but not while they wait. `Infinity` where everything that is asked for fits into `room`.
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

/** How a pool is used at the moment. */
export interface PoolUse {
  readonly slots: number
  /** By all tenants. */
  readonly taken: number
  /** As `shareOf` has it. */
  readonly share: number
  /** Ingresses that may take a slot at the same moment. */
  readonly ingresses: number
}

/** Whether a tenant may take one slot more. */
export const mayTake = (
  tenant: Pick<TenantDemand, "taken" | "weight">,
  { ingresses, share, slots, taken }: PoolUse
): boolean =>
  tenant.taken < share * tenant.weight &&
  (taken < roomOf(slots) || tenant.taken < (slots - taken) / ingresses)
