/**
 * The room that a body takes while it is read, in the same budget as those of jobs: clients that send slowly, or stop in the
 * middle, would else fill the memory before anybody could turn them away.
 */
import type { BodyBudget } from "../../../shared/bounds/BodyBudget.ts"
import { QueueFull } from "../../../shared/contract/JobError.ts"

/** The first bytes of a body are not counted: most clients send no more, and all at once. */
export const freeBytes = 256 * 1024

export class ReadingRoom {
  readonly #bodies: BodyBudget
  readonly #tenant: string
  #taken = 0

  constructor(bodies: BodyBudget, tenant: string) {
    this.#bodies = bodies
    this.#tenant = tenant
  }

  /** Whether there is room for so many bytes in all. */
  hasRoomFor(bytes: number): boolean {
    if (bytes < freeBytes || bytes <= this.#taken) return true
    if (!this.#bodies.take(this.#tenant, bytes - this.#taken)) return false
    this.#taken = bytes
    return true
  }

  /** The body is read, and its job's to count, or nobody's. */
  leave(): void {
    if (this.#taken > 0) this.#bodies.give(this.#tenant, this.#taken)
    this.#taken = 0
  }
}

/** When room will be there nobody knows: whoever is read now may be gone in a moment. */
export const noRoom = new QueueFull({ retryAfterMs: 1_000 })
