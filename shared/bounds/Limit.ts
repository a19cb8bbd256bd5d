/**
 * Limits of keys and of providers, which hold across all replicas of a service.
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
}

export interface Taken {
  /** Corrects the number of units: the surplus is returned, missing units count from now on. */
  readonly settle: (units: number) => void
}

/** The units are not available in time. */
export interface LimitReached {
  readonly _tag: "LimitReached"
  readonly retryAfterMs: number
}

/**
 * Reads `GATEWAY_LIMIT_WINDOW_MS`: the window of limits per minute, in milliseconds (default 60,000; shorter only to
 * see limits take effect sooner).
 */
export const limitWindowMs = Config.schema(
  Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)),
  "GATEWAY_LIMIT_WINDOW_MS"
).pipe(Config.withDefault(60_000))

/** Units that one request needs from a limit. */
export interface Demand {
  readonly kind: "concurrent" | "requests" | "tokens"
  readonly limit: Limit
  readonly units: number
}

/** The units that one request takes from several limits, in order, and settles when it has ended. */
export class Holding {
  readonly #demands: ReadonlyArray<Demand>
  readonly #taken: Array<Taken> = []

  constructor(demands: ReadonlyArray<Demand>) {
    this.#demands = demands
  }

  /** The first demand that is not met. */
  get #next(): Demand | undefined {
    return this.#demands[this.#taken.length]
  }

  get isComplete(): boolean {
    return this.#next === undefined
  }

  /** Takes units as far as possible without waiting. Returns whether it has all. */
  takeAvailable(tryTake: (demand: Demand) => Taken | undefined): boolean {
    for (let demand = this.#next; demand !== undefined; demand = this.#next) {
      const taken = tryTake(demand)
      if (taken === undefined) return false
      this.#taken.push(taken)
    }
    return true
  }

  /** Waits for the missing units. */
  takeRest<E>(take: (demand: Demand) => Effect.Effect<Taken, E>): Effect.Effect<void, E> {
    const missing = this.#demands.slice(this.#taken.length)
    return Effect.forEach(missing, (demand) => Effect.map(take(demand), (taken) => void this.#taken.push(taken)), {
      discard: true
    })
  }

  /** For a request that is not served. */
  returnAll(): void {
    for (const { settle } of this.#taken.splice(0)) settle(0)
  }

  /** Reserved tokens count if the number of used ones is unknown. Only the first call has an effect. */
  settle(usedTokens: number | undefined): void {
    for (const [index, { settle }] of this.#taken.splice(0).entries()) {
      const kind = this.#demands[index]?.kind
      if (kind === "concurrent") settle(0)
      else if (kind === "tokens" && usedTokens !== undefined) settle(usedTokens)
    }
  }
}
