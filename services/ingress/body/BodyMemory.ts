/**
 * The memory for bodies that are being read, and the wait of those for which none is left: their connections are not read meanwhile.
 * The oldest may take what it still needs beyond the budget. Otherwise bodies that are nearly complete could use up the memory and
 * all wait for each other.
 */
import { Context, Effect, Latch, Layer } from "effect"
import { everyWhile } from "../../../shared/bounds/MonotonicClock.ts"
import { TenantBudget } from "../../../shared/bounds/TenantBudget.ts"
import { JobClient } from "../../../shared/bus/ingress/JobClient.ts"
import { queueTimeout } from "../../../shared/bus/ingress/QueueTimeout.ts"
import { type Need, type SharedMemory, UploadBudget } from "./UploadBudget.ts"

/** The largest body that is read: 32 MiB. */
export const maxBodyBytes = 32 * 1024 * 1024

/** How often the waits are checked, in milliseconds. */
const tickMs = 1_000

/** How many bodies may wait, in all; one tenant has a share of them. */
const maxWaiting = 1_024

interface Wait extends Need {
  readonly done: (isGranted: boolean) => void
  /** How long it has waited, in milliseconds. */
  waitedMs: number
}

export class BodyWaits implements SharedMemory {
  readonly bodies: TenantBudget
  /** Opens while bodies wait. */
  readonly working = Latch.makeUnsafe(false)
  readonly #patienceMs: number
  readonly #excess: number
  readonly #places = new TenantBudget(maxWaiting)
  /** The oldest body is first. */
  #waits: Array<Wait> = []
  /** The body that may exceed the budget, until it is complete or dropped. */
  #beyond: UploadBudget | undefined
  #age = 0
  #isScheduled = false

  /** `patienceMs`: how long a body may wait; 0 for no wait. */
  constructor(bodies: TenantBudget, patienceMs: number) {
    this.bodies = bodies
    this.#patienceMs = patienceMs
    this.#excess = Math.min(maxBodyBytes, bodies.total / 2)
    bodies.onRelease(() => this.#schedule())
  }

  upload(tenant: string, request?: object): UploadBudget {
    return new UploadBudget(this, tenant, request)
  }

  nextAge(): number {
    return this.#age++
  }

  /** Calls `done`, never before it returns, when the need is met or has waited for too long. Returns a function that ends the wait. */
  wait(need: Need, done: (isGranted: boolean) => void): () => void {
    const { age, tenant } = need.budget
    if (this.#patienceMs <= 0 || !this.#places.reserve(tenant, 1)) {
      queueMicrotask(() => done(false))
      return () => {}
    }
    const wait: Wait = { ...need, done, waitedMs: 0 }
    const before = this.#waits.findLastIndex(({ budget }) => budget.age < age)
    this.#waits.splice(before + 1, 0, wait)
    this.#schedule()
    return () => this.#remove(wait)
  }

  /** The body no longer takes memory, or its job does. */
  ended(budget: UploadBudget): void {
    if (this.#beyond !== budget) return
    this.#beyond = undefined
    this.#schedule()
  }

  /** To be called every `tickMs`. */
  tick(): void {
    for (const wait of [...this.#waits]) {
      wait.waitedMs += tickMs
      if (wait.waitedMs > this.#patienceMs && this.#remove(wait)) wait.done(false)
    }
  }

  #remove(wait: Wait): boolean {
    const at = this.#waits.indexOf(wait)
    if (at === -1) return false
    this.#waits.splice(at, 1)
    this.#places.release(wait.budget.tenant, 1)
    if (this.#waits.length === 0) this.working.closeUnsafe()
    return true
  }

  /** Later, so that a job can take over the memory of its body before others get it. */
  #schedule(): void {
    if (this.#isScheduled || this.#waits.length === 0) return
    this.#isScheduled = true
    this.working.openUnsafe()
    queueMicrotask(() => {
      this.#isScheduled = false
      this.#grant()
    })
  }

  /**
   * A younger body of a tenant does not overtake an older one, unless that one waits for the younger body's end. Only the oldest that
   * does not fit may begin to exceed the budget.
   */
  #grant(): void {
    const blocked = new Set<string>()
    let isOldest = true
    const granted = this.#waits.filter((wait) => {
      const { budget } = wait
      const isBeyond = budget === this.#beyond
      if (isBeyond || !blocked.has(budget.tenant)) {
        if (fits(wait)) return true
        if ((isBeyond || (isOldest && this.#beyond === undefined)) && this.#exceed(wait)) return true
      }
      isOldest = false
      blocked.add(budget.tenant)
      return false
    })
    for (const wait of granted) if (this.#remove(wait)) wait.done(true)
  }

  #exceed({ budget, bytes, least }: Wait): boolean {
    if (!budget.overdraw(bytes, this.#excess) && !budget.overdraw(least, this.#excess)) return false
    this.#beyond = budget
    return true
  }
}

const fits = ({ budget, bytes, least }: Wait): boolean => budget.reserve(bytes) || budget.reserve(least)

export class BodyMemory extends Context.Service<BodyMemory, BodyWaits>()("services/ingress/body/BodyMemory") {
  /** A body waits for memory as long as a request for a worker: see `queueTimeout`. */
  static readonly layer = Layer.effect(
    BodyMemory,
    Effect.gen(function*() {
      const waits = new BodyWaits((yield* JobClient).bodies, yield* queueTimeout)
      yield* everyWhile(waits.working, tickMs, 60 * tickMs, () => waits.tick())
      return waits
    })
  )
}
