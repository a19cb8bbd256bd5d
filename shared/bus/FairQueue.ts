/**
 * A bounded queue that is fair between tenants: each tenant has a line of its own and the lines are served in turn, so
 * that a tenant with a thousand waiting jobs delays another by one job, not by a thousand.
 */
export class FairQueue<A> {
  readonly #lines = new Map<string, Set<A>>()
  readonly #capacity: number
  #size = 0

  /** `capacity` counts items over all tenants. */
  constructor(capacity: number) {
    this.#capacity = capacity
  }

  get size(): number {
    return this.#size
  }

  /** `false` where the queue is full. */
  offer(tenant: string, item: A): boolean {
    if (this.#size >= this.#capacity) return false
    const line = this.#lines.get(tenant)
    if (line === undefined) this.#lines.set(tenant, new Set([item]))
    else line.add(item)
    this.#size++
    return true
  }

  take(): A | undefined {
    const [turn] = this.#lines
    if (turn === undefined) return undefined
    const [tenant, line] = turn
    const [item] = line
    this.#lines.delete(tenant)
    if (item === undefined) return this.take()
    line.delete(item)
    // to the end of the round
    if (line.size > 0) this.#lines.set(tenant, line)
    this.#size--
    return item
  }

  remove(tenant: string, item: A): void {
    const line = this.#lines.get(tenant)
    if (line === undefined || !line.delete(item)) return
    this.#size--
    if (line.size === 0) this.#lines.delete(tenant)
  }
}
