/**
 * Admits requests by their key's models, budget and limits, which hold over all ingress processes together. Requests of a
 * key without limits are not counted.
 */
import { Cause, Clock, Config, Context, Effect, Exit, Layer, Predicate } from "effect"
import { atLeast } from "../../../shared/contract/Fields.ts"
import { type Limit, limitWindowMs, type Taken } from "../../../shared/contract/Limit.ts"
import type { Dialect, Operation, RequestBody } from "../../../shared/contract/Operation.ts"
import { type TokenDemand, tokenDemand } from "../../../shared/contract/TokenEstimate.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import { allows, type ApiKey } from "../../../shared/keys/ApiKey.ts"
import { Limits } from "../../../shared/limits/Limits.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { BudgetSpent, KeyLimitReached, ModelNotAllowed, TokensOverLimit } from "../errors/IngressError.ts"
import { limitHeaders } from "./LimitHeaders.ts"

/**
 * Settles a request when it has ended, with its actual usage: `"nothing"` without an answer; `undefined` if the usage is
 * unknown, so that the reserved units count. Only the first call has an effect.
 */
export type Settle = (consumed: Usage | "nothing" | undefined) => void

export interface AdmissionRequest {
  readonly operation: Operation
  readonly model: string
  readonly decoded: RequestBody
  /** The size of its body. */
  readonly bytes: number
}

type Kind = KeyLimitReached["limit"]
type Refusal = ModelNotAllowed | BudgetSpent | KeyLimitReached | TokensOverLimit

export class Admission extends Context.Service<Admission, {
  /**
   * Runs `serve` if the key's limits allow the request now or after a short wait. `serve` gets the function that settles
   * the request; failures and new tasks are settled automatically.
   */
  readonly admit: <A, E, R>(
    key: ApiKey,
    request: AdmissionRequest,
    serve: (settle: Settle | undefined) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | Refusal, R>
  /** Makes the response headers with the state of the key's limits; `undefined` if it has none. */
  readonly headers: (key: ApiKey, dialect: Dialect) => (() => Record<string, string>) | undefined
}>()("services/ingress/Admission") {
  /**
   * Reads `GATEWAY_LIMIT_WAIT_MS`, how long a request over a limit waits before it is rejected (default 1,000), and
   * `limitWindowMs`.
   */
  static readonly layer = Layer.effect(
    Admission,
    Effect.gen(function*() {
      const limits = yield* Limits
      const spending = yield* Spending
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      const windowMs = yield* limitWindowMs
      const waitMs = yield* Config.schema(atLeast(0), "GATEWAY_LIMIT_WAIT_MS").pipe(Config.withDefault(1_000))

      /** Takes units from the limits in order, as far as possible without waiting. */
      const takeAvailable = (reservation: Reservation): void => {
        for (let limit = reservation.next; limit !== undefined; limit = reservation.next) {
          const taken = limits.tryTake(limit, reservation.unitsOf(limit))
          if (taken === undefined) return
          reservation.add(taken)
        }
      }

      /** Waits for the missing units. */
      const takeRest = (reservation: Reservation): Effect.Effect<void, KeyLimitReached> => {
        const limit = reservation.next
        if (limit === undefined) return Effect.void
        return limits.take(limit, reservation.unitsOf(limit), now() + waitMs).pipe(
          Effect.mapError(({ retryAfterMs }) =>
            new KeyLimitReached({ limit: limit.kind, max: limit.limit, retryAfterMs })
          ),
          Effect.flatMap((taken) => {
            reservation.add(taken)
            return takeRest(reservation)
          })
        )
      }

      const admitWithin = <A, E, R>(
        keyLimits: KeyLimits,
        { bytes, decoded, operation }: AdmissionRequest,
        serve: (settle: Settle) => Effect.Effect<A, E, R>
      ): Effect.Effect<A, E | KeyLimitReached | TokensOverLimit, R> => {
        const demand = tokenDemand(operation, bytes, fieldOf(decoded))
        const excess = excessOf(keyLimits, demand)
        if (excess !== undefined) return Effect.fail(excess)
        const reservation = new Reservation(keyLimits, demand.tokens)
        const settle: Settle = (consumed) => reservation.settle(consumed)
        // units are returned even if the client disconnects; the wait for a limit stays interruptible
        return Effect.onExitPrimitive(
          Effect.suspend((): Effect.Effect<A, E | KeyLimitReached, R> => {
            takeAvailable(reservation)
            return reservation.next === undefined
              ? serve(settle)
              : Effect.flatMap(Effect.uninterruptible(takeRest(reservation)), () => serve(settle))
          }),
          (exit) => {
            if (reservation.next !== undefined) reservation.returnAll()
            else if (Exit.isFailure(exit)) settle(Cause.hasInterruptsOnly(exit.cause) ? undefined : "nothing")
            else if (operation.kind === "task") settle("nothing")
            return undefined
          }
        )
      }

      /** By the key's record, which every edit replaces. */
      const limitsByKey = new WeakMap<ApiKey, KeyLimits>()
      const limitsOf = (key: ApiKey): KeyLimits => {
        const found = limitsByKey.get(key)
        if (found !== undefined) return found
        const keyLimits = kinds.flatMap(({ field, kind }) => {
          const limit = key[field]
          if (limit === null) return []
          return [{ kind, key: `${key.id}.${kind}`, limit, windowMs: kind === "concurrent" ? 0 : windowMs }]
        })
        limitsByKey.set(key, keyLimits)
        return keyLimits
      }

      const stateOf = (keyLimits: KeyLimits, kind: Kind) => {
        const limit = keyLimits.find((limit) => limit.kind === kind)
        return limit === undefined ? undefined : { limit: limit.limit, ...limits.state(limit) }
      }

      return Admission.of({
        admit: (key, request, serve) => {
          if (!allows(key, request.model)) return Effect.fail(new ModelNotAllowed({ model: request.model }))
          const budgetUsd = key.monthlyBudgetUsd
          if (budgetUsd !== null && spending.of(key.id) >= budgetUsd) {
            return Effect.fail(new BudgetSpent({ budgetUsd, retryAfterMs: spending.resetMs() }))
          }
          const keyLimits = limitsOf(key)
          return keyLimits.length > 0 ? admitWithin(keyLimits, request, serve) : serve(undefined)
        },
        headers: (key, dialect) => {
          const keyLimits = limitsOf(key)
          if (keyLimits.length === 0) return undefined
          return () => {
            const states = { requests: stateOf(keyLimits, "requests"), tokens: stateOf(keyLimits, "tokens") }
            return limitHeaders(states, dialect, now())
          }
        }
      })
    })
  )
}

interface KeyLimit extends Limit {
  readonly kind: Kind
}

/** The limits of a key, in the order in which requests take units from them. */
type KeyLimits = ReadonlyArray<KeyLimit>

const kinds = [
  { kind: "concurrent", field: "concurrentRequests" },
  { kind: "requests", field: "requestsPerMinute" },
  { kind: "tokens", field: "tokensPerMinute" }
] as const

/** The units that a request has taken from its key's limits. */
class Reservation {
  readonly #limits: KeyLimits
  readonly #tokens: number
  readonly #taken: Array<Taken> = []
  #isSettled = false

  constructor(limits: KeyLimits, tokens: number) {
    this.#limits = limits
    this.#tokens = tokens
  }

  /** The next limit to take units from; `undefined` when none is left. */
  get next(): KeyLimit | undefined {
    return this.#limits[this.#taken.length]
  }

  unitsOf({ kind }: KeyLimit): number {
    return kind === "tokens" ? this.#tokens : 1
  }

  add(taken: Taken): void {
    this.#taken.push(taken)
  }

  /** For a request that is not served. */
  returnAll(): void {
    for (const taken of this.#taken) taken.settle(0)
  }

  settle(consumed: Parameters<Settle>[0]): void {
    if (this.#isSettled) return
    this.#isSettled = true
    for (const [index, { kind }] of this.#limits.entries()) {
      if (kind === "concurrent") this.#taken[index]?.settle(0)
      else if (kind === "tokens" && consumed !== undefined) {
        this.#taken[index]?.settle(consumed === "nothing" ? 0 : consumed.inputTokens + consumed.outputTokens)
      }
    }
  }
}

/**
 * The error of a request that states more tokens than its key's limit. Estimates may be too high, so a request whose
 * estimate exceeds the limit reserves the whole limit instead.
 */
const excessOf = (limits: KeyLimits, { stated }: TokenDemand): TokensOverLimit | undefined => {
  const limit = limits.find(({ kind }) => kind === "tokens")
  if (limit === undefined || stated === undefined || stated.tokens <= limit.limit) return undefined
  return new TokensOverLimit({ ...stated, max: limit.limit })
}

const fieldOf = (decoded: RequestBody) => (name: string): unknown =>
  Predicate.hasProperty(decoded, name) ? decoded[name] : undefined
