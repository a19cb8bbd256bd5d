/**
 * The memory for one body while it is read, from the same budget as the bodies of jobs. Without it, clients that send slowly
 * or stall could fill the memory before ingress can reject them.
 */
import type { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"
import { QueueFull } from "../../../shared/contract/JobError.ts"

export class UploadBudget {
  readonly #bodies: TenantBudget
  readonly #tenant: string
  #reserved = 0

  constructor(bodies: TenantBudget, tenant: string) {
    this.#bodies = bodies
    this.#tenant = tenant
  }

  /** Reserves memory for a body of this total size; `false` if there is not enough. */
  reserve(bytes: number): boolean {
    if (bytes <= this.#reserved) return true
    if (!this.#bodies.reserve(this.#tenant, bytes - this.#reserved)) return false
    this.#reserved = bytes
    return true
  }

  /** Returns the memory when the body has been read and its job counts it, or when it is dropped. */
  release(): void {
    if (this.#reserved > 0) this.#bodies.release(this.#tenant, this.#reserved)
    this.#reserved = 0
  }
}

/** The retry time is a guess: a body that is being read may be finished at any moment. */
export const noMemory = new QueueFull({ retryAfterMs: 1_000 })
