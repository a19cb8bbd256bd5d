/**
 * The units of limits of concurrent requests that requests at this ingress hold, and which of these requests wait for a provider.
 *
 * A request that waits still counts as concurrent. But while so many wait that fewer than half of a limit are at work, a request for
 * another model is admitted without a unit. An ingress knows only its own requests that wait and counts all others as at work, so all
 * ingresses together do not bring more than half of a limit to work in this way.
 */
import type { Limit, Taken } from "../../../shared/bounds/Limit.ts"

/** How many requests that hold units of a limit wait for a provider: for any, and for the one with the most. */
export interface WaitingRequests {
  readonly requests: number
  readonly provider: string
  readonly ofProvider: number
}

/** A limit, as this ingress knows it. */
class Level {
  /** Requests that hold a unit and wait, by provider. */
  readonly waiting = new Map<string, number>()
  /** Those of all providers together. */
  waits = 0
  /** Requests without a unit, and those of them that wait. */
  extras = 0
  waitingExtras = 0
  /** All requests that hold a unit or go on without. */
  requests = 0

  mayAddExtra(limit: number): boolean {
    const half = Math.floor(limit / 2)
    return this.extras < half && limit - this.waits + this.extras - this.waitingExtras < half
  }
}

const add = (counts: Map<string, number>, name: string, more: 1 | -1): void => {
  const count = (counts.get(name) ?? 0) + more
  if (count === 0) counts.delete(name)
  else counts.set(name, count)
}

/** What one request holds of one limit: a unit, or the permission to go on without. */
export class ConcurrentUnit<L extends Limit = Limit> implements Taken {
  readonly limit: L
  readonly #level: Level
  readonly #onUnused: () => void
  #unit: Taken | undefined
  #provider: string | undefined
  #isSettled = false

  constructor(limit: L, level: Level, unit: Taken | undefined, onUnused: () => void) {
    this.limit = limit
    this.#level = level
    this.#unit = unit
    this.#onUnused = onUnused
    level.requests++
    if (unit === undefined) level.extras++
  }

  /** Whether the request goes on without a unit. */
  get isExtra(): boolean {
    return this.#unit === undefined
  }

  /** A request without a unit gets one. */
  become(unit: Taken): void {
    if (this.#isSettled) return unit.settle(0)
    this.#unit = unit
    this.#level.extras--
  }

  /** The request waits for this provider, or no longer. */
  wait(provider: string | undefined): void {
    if (this.#isSettled) return
    if (this.#provider !== undefined) this.#count(this.#provider, -1)
    this.#provider = provider
    if (provider !== undefined) this.#count(provider, 1)
  }

  #count(provider: string, more: 1 | -1): void {
    if (this.#unit === undefined) this.#level.waitingExtras += more
    else {
      add(this.#level.waiting, provider, more)
      this.#level.waits += more
    }
  }

  readonly settle = (units: number): void => {
    if (this.#isSettled) return
    this.wait(undefined)
    this.#isSettled = true
    if (this.#unit === undefined) this.#level.extras--
    else this.#unit.settle(units)
    if (--this.#level.requests === 0) this.#onUnused()
  }
}

export class ConcurrentUnits {
  /** By the limit's key. */
  readonly #levels = new Map<string, Level>()
  /** How many requests for a model wait for a provider. */
  readonly #models = new Map<string, number>()

  /** A unit that a request has taken. */
  taken<L extends Limit>(limit: L, unit: Taken): ConcurrentUnit<L> {
    return this.#make(limit, unit)
  }

  /** Admits a request without a unit; `undefined` if it has to take one. The model may not be known yet. */
  extra<L extends Limit>(limit: L, model: string | undefined): ConcurrentUnit<L> | undefined {
    const mayAdd = this.#levels.get(limit.key)?.mayAddExtra(limit.limit) === true
    return mayAdd && (model === undefined || this.isFree(model)) ? this.#make(limit, undefined) : undefined
  }

  #make<L extends Limit>(limit: L, unit: Taken | undefined): ConcurrentUnit<L> {
    const { key } = limit
    let level = this.#levels.get(key)
    if (level === undefined) this.#levels.set(key, level = new Level())
    return new ConcurrentUnit(limit, level, unit, () => void this.#levels.delete(key))
  }

  /** Whether no request for the model waits for a provider. */
  isFree(model: string): boolean {
    return !this.#models.has(model)
  }

  /** The requests that hold units of the limit and wait; `undefined` if none does. */
  waiting({ key }: Limit): WaitingRequests | undefined {
    const level = this.#levels.get(key)
    if (level === undefined || level.waits === 0) return undefined
    const [provider, ofProvider] = [...level.waiting].reduce((most, one) => one[1] > most[1] ? one : most)
    return { requests: level.waits, provider, ofProvider }
  }

  /** A request for the model, which holds these units, waits for this provider until the returned function is called. */
  wait(model: string, units: ReadonlyArray<ConcurrentUnit>, provider: string): () => void {
    add(this.#models, model, 1)
    for (const unit of units) unit.wait(provider)
    let hasEnded = false
    return () => {
      if (hasEnded) return
      hasEnded = true
      add(this.#models, model, -1)
      for (const unit of units) unit.wait(undefined)
    }
  }
}
