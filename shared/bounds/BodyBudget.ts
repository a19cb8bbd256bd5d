/** How much memory the bodies of an ingress's requests may hold together, and those of one tenant: half of it. */

const mebibyte = 1024 * 1024

/** A tenant's half has room for the largest body there is. */
const least = 64 * mebibyte
const most = 512 * mebibyte

/**
 * What there is for bodies in a process that may have so much memory. Ingress keeps them as they came, and a quarter of its
 * memory is for them: the one that is being decoded takes up to five times its size besides, and garbage as much. A worker decodes them and writes them
 * anew, for which it is an eighth.
 */
export const bodyBytesWithin = (memory: number, part: 4 | 8): number =>
  Math.max(least, Math.min(most, Math.floor(memory / part)))

export class BodyBudget {
  readonly #bytes: number
  #used = 0
  readonly #usedBy = new Map<string, number>()

  constructor(bytes: number) {
    this.#bytes = bytes
  }

  /** Sets so much aside; `false` where there is no room for it. */
  take(tenant: string, bytes: number): boolean {
    const own = this.#usedBy.get(tenant) ?? 0
    if (bytes > Math.min(this.#bytes - this.#used, this.#bytes / 2 - own)) return false
    this.#used += bytes
    this.#usedBy.set(tenant, own + bytes)
    return true
  }

  /** Gives back what was taken. */
  give(tenant: string, bytes: number): void {
    this.#used -= bytes
    const own = (this.#usedBy.get(tenant) ?? 0) - bytes
    if (own === 0) this.#usedBy.delete(tenant)
    else this.#usedBy.set(tenant, own)
  }
}
