/**
 * How many jobs a worker may run now: as many as it has slots, and fewer while its process is short of memory or its event loop is late.
 *
 * The limit only holds back new jobs. It shrinks by at most a tenth per second, never below `leastSlots`, and never further than a tenth
 * below the running jobs: what has not ended yet cannot have relieved the process. Between strained and calm it stays. Growth waits for a
 * rest, which doubles with each growth that ends in strain, so that a steady load settles instead of swinging.
 */

/** The state of a process, measured over about a second. */
export interface Strain {
  /** How late timers ran on average, in milliseconds. */
  readonly lateMs: number
  /** The used part of the process's memory, from 0 to 1. */
  readonly memory: number
}

/** A worker with at most this many slots keeps them. */
export const leastSlots = 64

/** Above these the process is strained, below the others calm. Garbage collection alone makes timers late by less than `calm.lateMs`. */
const strained: Strain = { lateMs: 200, memory: 0.85 }
const calm: Strain = { lateMs: 50, memory: 0.75 }

/** How long the event loop must be late before it counts, in milliseconds: the start of a thousand streams is no overload. */
const lateForMs = 3_000

/** The shortest interval between two changes, in milliseconds, and the largest changes, as parts of the limit. */
const changeMs = 1_000
const shrinkBy = 0.1
const growBy = 0.025

/** How long the process must be calm before the limit grows, in milliseconds: at first, and after many attempts that failed. */
const firstRestMs = 10_000
const longestRestMs = 10 * 60_000
/** After how long without strain the attempts are forgotten, in milliseconds: it is another load. */
const forgetMs = 3 * longestRestMs

export class SlotLimit {
  readonly #most: number
  #current: number
  #changedAt = Number.NEGATIVE_INFINITY
  #lateSince: number | undefined
  #calmSince: number | undefined
  #strainedAt = Number.NEGATIVE_INFINITY
  #restMs = firstRestMs
  #hasGrown = false

  constructor(most: number) {
    this.#most = this.#current = most
  }

  get current(): number {
    return this.#current
  }

  /** Whether there are fewer slots than configured. */
  get isReduced(): boolean {
    return this.#current < this.#most
  }

  /** Applies a measurement, made at `now` on a monotonic clock in milliseconds, while this many jobs run. */
  update({ lateMs, memory }: Strain, inFlight: number, now: number): void {
    this.#lateSince = lateMs < strained.lateMs ? undefined : this.#lateSince ?? now
    const isCalm = lateMs <= calm.lateMs && memory <= calm.memory
    this.#calmSince = isCalm ? this.#calmSince ?? now : undefined
    const isStrained = memory >= strained.memory || now - (this.#lateSince ?? now) >= lateForMs
    // several measurements may share a second
    if (now - this.#changedAt < changeMs) return
    if (isStrained) this.#shrink(inFlight, now)
    else if (now - (this.#calmSince ?? now) >= this.#restMs) this.#grow(now)
  }

  #shrink(inFlight: number, now: number): void {
    if (now - this.#strainedAt > forgetMs) this.#restMs = firstRestMs
    else if (this.#hasGrown) this.#restMs = Math.min(longestRestMs, 2 * this.#restMs)
    this.#strainedAt = now
    this.#hasGrown = false
    const lowest = Math.max(leastSlots, Math.ceil((1 - shrinkBy) * inFlight))
    this.#change(Math.min(this.#current, Math.max(lowest, Math.ceil((1 - shrinkBy) * this.#current))), now)
  }

  #grow(now: number): void {
    if (!this.isReduced) return
    this.#hasGrown = true
    this.#change(Math.min(this.#most, this.#current + Math.ceil(growBy * this.#current)), now)
  }

  #change(slots: number, now: number): void {
    if (slots === this.#current) return
    this.#current = slots
    this.#changedAt = now
  }
}
