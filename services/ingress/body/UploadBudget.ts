/**
 * The memory for one body while it is read, from the same budget as the bodies of jobs. Without it, clients that send slowly
 * or stall could fill the memory before ingress can reject them.
 */
import { Effect } from "effect"
import type { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"
import { QueueFull } from "../../../shared/contract/JobError.ts"
import { hold, letGo } from "../../../shared/process/http/ReceiveRate.ts"

/** What a body that is read needs. */
export interface Need {
  readonly budget: UploadBudget
  /** The total size that the body would like to grow to, and the one that it needs to go on. */
  readonly bytes: number
  readonly least: number
}

/** The memory that all bodies share; see `BodyMemory.ts`. */
export interface SharedMemory {
  readonly bodies: TenantBudget
  readonly nextAge: () => number
  readonly wait: (need: Need, done: (isGranted: boolean) => void) => () => void
  readonly ended: (budget: UploadBudget) => void
}

export class UploadBudget {
  readonly tenant: string
  /** The position of the body among all bodies, in the order in which their reading began. */
  readonly age: number
  readonly #memory: SharedMemory
  readonly #request: object
  #reserved = 0
  /** What is reserved besides the body. */
  #besides = 0

  /** `request`: the request of the body, which is not slow while the body waits for memory. */
  constructor(memory: SharedMemory, tenant: string, request: object = {}) {
    this.#memory = memory
    this.#request = request
    this.tenant = tenant
    this.age = memory.nextAge()
  }

  /** Reserves memory for a body of this total size; `false` if there is not enough. */
  reserve(bytes: number): boolean {
    const total = bytes + this.#besides
    if (total <= this.#reserved) return true
    if (!this.#memory.bodies.reserve(this.tenant, total - this.#reserved)) return false
    this.#reserved = total
    return true
  }

  /** Reserves memory besides that of the body, until the body is complete; `false` if there is not enough. */
  reserveBesides(bytes: number): boolean {
    this.#besides = bytes
    return this.reserve(0)
  }

  /** Like `reserve`, but beyond the budget by up to `excess`. */
  overdraw(bytes: number, excess: number): boolean {
    const total = bytes + this.#besides
    if (total <= this.#reserved) return true
    if (!this.#memory.bodies.overdraw(this.tenant, total - this.#reserved, excess)) return false
    this.#reserved = total
    return true
  }

  /** Waits until there is memory for this total size. Fails if that takes too long. */
  wait(bytes: number): Effect.Effect<void, QueueFull> {
    return Effect.suspend(() =>
      this.reserve(bytes)
        ? Effect.void
        : Effect.callback<void, QueueFull>((resume) => {
          const done = (isGranted: boolean) => resume(isGranted ? Effect.void : Effect.fail(noMemory))
          return Effect.sync(this.whenFree(bytes, bytes, done))
        })
    )
  }

  /** Calls `done` when there is memory for `bytes`, or at least for `least`, or when the wait has been too long. */
  whenFree(bytes: number, least: number, done: (isGranted: boolean) => void): () => void {
    hold(this.#request)
    const cancel = this.#memory.wait({ budget: this, bytes, least }, (isGranted) => {
      letGo(this.#request)
      done(isGranted)
    })
    return () => {
      letGo(this.#request)
      cancel()
    }
  }

  /** Returns what exceeds the size of the complete body. */
  shrink(bytes: number): void {
    this.#besides = 0
    const surplus = this.#reserved - bytes
    if (surplus <= 0) return
    this.#reserved = bytes
    this.#memory.bodies.release(this.tenant, surplus)
  }

  /** Passes the reserved memory on: the caller, who learns its size, releases it. */
  handOver(): number {
    const bytes = this.#reserved
    this.#reserved = 0
    this.#memory.ended(this)
    return bytes
  }

  /** Returns the memory when the body is dropped, or is no longer needed. */
  release(): void {
    const bytes = this.handOver()
    if (bytes > 0) this.#memory.bodies.release(this.tenant, bytes)
  }
}

/** The retry time is a guess: a body that is being read may be finished at any moment. */
export const noMemory = new QueueFull({ retryAfterMs: 1_000 })
