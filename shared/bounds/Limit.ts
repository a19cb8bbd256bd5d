/**
 * Describes the limits of keys and providers, which hold across all replicas of a service.
 *
 * A limit counts units, such as requests or tokens. With a window, a unit counts for that long after it was taken; without
 * one, until it is returned.
 */
import { Config, Effect, Schema } from "effect"

export interface Limit {
  /** Names the limit, the same in every replica: letters, digits and `-_=/.`. */
  readonly key: string
  readonly limit: number
  /** Milliseconds; 0 for no window. */
  readonly windowMs: number
  /**
   * Whether used units lower the limit itself, as costs lower what is left of a budget. Then a replica does not use returned units again
   * without asking the ledger, and units in use when it ends stay held until its lease expires. Only without a window.
   */
  readonly isConsumed?: boolean
}

export interface Taken {
  /** Corrects the number of units: the surplus is returned, missing units count from now on. */
  readonly settle: (units: number) => void
}

/** The result if units are not available in time. */
export interface LimitReached {
  readonly _tag: "LimitReached"
  readonly retryAfterMs: number
}

/** The result if the ledger of the limit cannot be read or written, so that units may or may not be available. */
export interface LimitUnknown {
  readonly _tag: "LimitUnknown"
  readonly retryAfterMs: number
}

/** Why units are missing. */
export type UnitsMissing = LimitReached | LimitUnknown

/**
 * Reads `GATEWAY_LIMIT_WINDOW_MS`: the window of limits per minute, in milliseconds (default 60,000; set it lower only to see limits
 * take effect sooner).
 */
export const limitWindowMs = Config.schema(
  Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  "GATEWAY_LIMIT_WINDOW_MS"
).pipe(Config.withDefault(60_000))

/** The units that one request needs from a limit. */
export interface Demand<L extends Limit = Limit> {
  readonly kind: "concurrent" | "requests" | "tokens" | "budget"
  readonly limit: L
  readonly units: number
}

/** The units that one request takes from several limits, in order, and settles when the request ends. */
export class Holding<L extends Limit = Limit> {
  readonly #demands: Array<Demand<L>>
  readonly #taken: Array<Taken> = []

  constructor(demands: ReadonlyArray<Demand<L>>) {
    this.#demands = [...demands]
  }

  /** Adds demands to those that are met. */
  demand(more: ReadonlyArray<Demand<L>>): void {
    this.#demands.push(...more)
  }

  /** The first demand that is not met. */
  get #next(): Demand<L> | undefined {
    return this.#demands[this.#taken.length]
  }

  get isComplete(): boolean {
    return this.#next === undefined
  }

  /** Takes units as far as possible without waiting. Returns whether all are taken. */
  takeAvailable(tryTake: (demand: Demand<L>) => Taken | undefined): boolean {
    for (let demand = this.#next; demand !== undefined; demand = this.#next) {
      const taken = tryTake(demand)
      if (taken === undefined) return false
      this.#taken.push(taken)
    }
    return true
  }

  /** Waits for the missing units. */
  takeRest<E>(take: (demand: Demand<L>) => Effect.Effect<Taken, E>): Effect.Effect<void, E> {
    const missing = this.#demands.slice(this.#taken.length)
    return Effect.forEach(missing, (demand) => Effect.map(take(demand), (taken) => void this.#taken.push(taken)), {
      discard: true
    })
  }

  /** Returns all units of a request that is not served. */
  returnAll(): void {
    for (const { settle } of this.#taken.splice(0)) settle(0)
  }

  /** Settles all units. Unknown tokens or costs count as reserved. Only the first call has an effect. */
  settle(usedTokens: number | undefined, usedCost?: number): void {
    for (const [index, { settle }] of this.#taken.splice(0).entries()) {
      const { kind, units = 0 } = this.#demands[index] ?? {}
      if (kind === "concurrent") settle(0)
      else if (kind === "budget") settle(usedCost ?? units)
      else if (kind === "tokens" && usedTokens !== undefined) settle(usedTokens)
    }
  }
}
