/** Limits a resource that all tenants of a process share, such as memory for bodies. One tenant may use half of it. */

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

export class TenantBudget {
  readonly #total: number
  #used = 0
  readonly #usedBy = new Map<string, number>()

  constructor(total: number) {
    this.#total = total
  }

  /** Reserves an amount; `false` if that much is not left, in all or for this tenant. */
  reserve(tenant: string, amount: number): boolean {
    const own = this.#usedBy.get(tenant) ?? 0
    if (amount > Math.min(this.#total - this.#used, this.#total / 2 - own)) return false
    this.#used += amount
    this.#usedBy.set(tenant, own + amount)
    return true
  }

  release(tenant: string, amount: number): void {
    this.#used -= amount
    const own = (this.#usedBy.get(tenant) ?? 0) - amount
    if (own === 0) this.#usedBy.delete(tenant)
    else this.#usedBy.set(tenant, own)
  }
}
