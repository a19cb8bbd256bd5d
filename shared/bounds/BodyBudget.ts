/** Bounds the memory for the bodies of all requests in a process. One tenant may use half of it. */

const mebibyte = 1024 * 1024

/** The minimum. One tenant's share is half of it and has room for the largest body. */
const least = 64 * mebibyte
const most = 512 * mebibyte

/**
 * The budget for bodies in a process with this much memory. Ingress keeps bodies as received, in a quarter of its memory:
 * the body being decoded takes up to five times its size, and garbage as much again. A worker decodes and re-encodes them,
 * so its part is an eighth.
 */
export const bodyBudgetBytes = (memory: number, part: 4 | 8): number =>
  Math.max(least, Math.min(most, Math.floor(memory / part)))

export class BodyBudget {
  readonly #bytes: number
  #used = 0
  readonly #usedBy = new Map<string, number>()

  constructor(bytes: number) {
    this.#bytes = bytes
  }

  /** Reserves memory; `false` if there is not enough. */
  reserve(tenant: string, bytes: number): boolean {
    const own = this.#usedBy.get(tenant) ?? 0
    if (bytes > Math.min(this.#bytes - this.#used, this.#bytes / 2 - own)) return false
    this.#used += bytes
    this.#usedBy.set(tenant, own + bytes)
    return true
  }

  release(tenant: string, bytes: number): void {
    this.#used -= bytes
    const own = (this.#usedBy.get(tenant) ?? 0) - bytes
    if (own === 0) this.#usedBy.delete(tenant)
    else this.#usedBy.set(tenant, own)
  }
}
