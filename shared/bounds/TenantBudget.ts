/**
 * Limits a resource that all tenants of a process share, such as memory for bodies. One tenant may use half of it. The last quarter is
 * kept for those who use little: each of them gets a share of what is left of it, so that some is left for the next.
 */

const mebibyte = 1024 * 1024

/** The bounds of the budget, in bytes. Half of the minimum, one tenant's share, has room for the largest body. */
const least = 64 * mebibyte
const most = 512 * mebibyte

/**
 * The budget for bodies in a process with this much memory. Ingress keeps bodies as received, in a quarter of its memory:
 * the body being decoded takes up to five times its size, and garbage as much again. A worker decodes and re-encodes them,
 * so its part is an eighth.
 */
export const bodyBudgetBytes = (memory: number, part: 4 | 8): number =>
  Math.max(least, Math.min(most, Math.floor(memory / part)))

/** The part of the total that is kept, and the part of its rest that one tenant may hold. */
const quarter = 4

export class TenantBudget {
  readonly total: number
  readonly #kept: number
  #used = 0
  readonly #usedBy = new Map<string, number>()
  /** What tenants hold beyond the total. */
  #overdrawn = 0
  readonly #overdrawnBy = new Map<string, number>()
  #released: (() => void) | undefined

  /** `kept`: the amount for those who use little. Default: a quarter. */
  constructor(total: number, kept = total / quarter) {
    this.total = total
    this.#kept = kept
  }

  /** Calls this function, in place of an earlier one, after each release. */
  onRelease(released: () => void): void {
    this.#released = released
  }

  /** Reserves an amount; `false` if that much is not left, in all or for this tenant. */
  reserve(tenant: string, amount: number): boolean {
    const left = this.total - this.#used - amount
    const share = left >= this.#kept ? this.total / 2 : left / quarter
    if (of(this.#usedBy, tenant) + amount > share) return false
    this.#used += amount
    add(this.#usedBy, tenant, amount)
    return true
  }

  /** Reserves an amount beyond the total, of which all tenants together may have `excess`. */
  overdraw(tenant: string, amount: number, excess: number): boolean {
    if (this.#overdrawn + amount > excess) return false
    this.#overdrawn += amount
    add(this.#overdrawnBy, tenant, amount)
    return true
  }

  /** Returns an amount: first what the tenant holds beyond the total. */
  release(tenant: string, amount: number): void {
    const repaid = Math.min(amount, of(this.#overdrawnBy, tenant))
    this.#overdrawn -= repaid
    add(this.#overdrawnBy, tenant, -repaid)
    this.#used -= amount - repaid
    add(this.#usedBy, tenant, repaid - amount)
    this.#released?.()
  }
}

const of = (amounts: ReadonlyMap<string, number>, tenant: string): number => amounts.get(tenant) ?? 0

const add = (amounts: Map<string, number>, tenant: string, amount: number): void => {
  const sum = of(amounts, tenant) + amount
  if (sum === 0) amounts.delete(tenant)
  else amounts.set(tenant, sum)
}
