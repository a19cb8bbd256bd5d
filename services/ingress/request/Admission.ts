/**
 * Whether a key may have a request served now: its models, its budget and its limits, which hold over all ingress processes
 * together. Of a key without limits nothing is counted.
 */
import { Cause, Clock, Config, Context, Effect, Exit, Layer, Predicate } from "effect"
import { atLeast } from "../../../shared/contract/Fields.ts"
import type { Dialect, Operation, RequestBody } from "../../../shared/contract/Operation.ts"
import { type TokenDemand, tokenDemand } from "../../../shared/contract/TokenEstimate.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import { allows, type ApiKey } from "../../../shared/keys/ApiKey.ts"
import { type Limit, Limits } from "../../../shared/limits/Limits.ts"
import type { Taken } from "../../../shared/limits/Share.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { BudgetSpent, LimitReached, ModelNotAllowed, TokensOverLimit } from "../errors/IngressError.ts"
import { limitHeaders } from "./LimitHeaders.ts"

/**
 * Told when a request is over: what it has consumed in fact, `"nothing"` where there was no answer, `undefined` where that is
 * not known and what was set aside for it counts. Only the first word counts.
 */
export type Over = (consumed: Usage | "nothing" | undefined) => void

/** What is to be let through. */
export interface Asked {
  readonly operation: Operation
  readonly model: string
  readonly decoded: RequestBody
  /** The size of its body. */
  readonly bytes: number
}

type Kind = LimitReached["limit"]
type Refusal = ModelNotAllowed | BudgetSpent | LimitReached | TokensOverLimit

export class Admission extends Context.Service<Admission, {
  /**
   * Has a request served where its key may have that now, or in a moment. What serves it is given what to tell when it is
   * over; a failure says so by itself, and so does a task that has been made.
   */
  readonly through: <A, E, R>(
    key: ApiKey,
    asked: Asked,
    serve: (over: Over | undefined) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E | Refusal, R>
  /** What the headers of an answer say of the key's limits; `undefined` where it has none. */
  readonly headers: (key: ApiKey, dialect: Dialect) => (() => Record<string, string>) | undefined
}>()("services/ingress/Admission") {
  /**
   * Reads `GATEWAY_LIMIT_WINDOW_MS`, for how long what a key has used counts against its limits per minute (default 60,000),
   * and `GATEWAY_LIMIT_WAIT_MS`, for how long a request that is too much waits before it is turned away (default 1,000).
   */
  static readonly layer = Layer.effect(
    Admission,
    Effect.gen(function*() {
      const limits = yield* Limits
      const spending = yield* Spending
      const clock = yield* Clock.Clock
      const now = () => clock.currentTimeMillisUnsafe()
      const windowMs = yield* Config.schema(atLeast(1), "GATEWAY_LIMIT_WINDOW_MS").pipe(Config.withDefault(60_000))
      const waitMs = yield* Config.schema(atLeast(0), "GATEWAY_LIMIT_WAIT_MS").pipe(Config.withDefault(1_000))

      /** Takes of the limits what a request needs, one after the other, as far as it can be had without waiting. */
      const takeInHand = (holding: Holding): void => {
        for (let bound = holding.next; bound !== undefined; bound = holding.next) {
          const taken = limits.tryTake(bound, holding.unitsOf(bound))
          if (taken === undefined) return
          holding.add(taken)
        }
      }

      /** Waits for what is missing. */
      const takeRest = (holding: Holding): Effect.Effect<void, LimitReached> => {
        const bound = holding.next
        if (bound === undefined) return Effect.void
        return limits.take(bound, holding.unitsOf(bound), now() + waitMs).pipe(
          Effect.mapError(({ retryAfterMs }) =>
            new LimitReached({ limit: bound.kind, most: bound.limit, retryAfterMs })
          ),
          Effect.flatMap((taken) => {
            holding.add(taken)
            return takeRest(holding)
          })
        )
      }

      const counted = <A, E, R>(
        bounds: Bounds,
        { bytes, decoded, operation }: Asked,
        serve: (over: Over) => Effect.Effect<A, E, R>
      ): Effect.Effect<A, E | LimitReached | TokensOverLimit, R> => {
        const demand = tokenDemand(operation, bytes, fieldOf(decoded))
        const excess = excessOf(bounds, demand)
        if (excess !== undefined) return Effect.fail(excess)
        const holding = new Holding(bounds, demand.tokens)
        const over: Over = (consumed) => holding.over(consumed)
        // what was taken is given back whenever the client leaves; waiting for a limit can be interrupted all the same
        return Effect.onExitPrimitive(
          Effect.suspend((): Effect.Effect<A, E | LimitReached, R> => {
            takeInHand(holding)
            return holding.next === undefined
              ? serve(over)
              : Effect.flatMap(Effect.uninterruptible(takeRest(holding)), () => serve(over))
          }),
          (exit) => {
            if (holding.next !== undefined) holding.giveBack()
            else if (Exit.isFailure(exit)) holding.over(Cause.hasInterruptsOnly(exit.cause) ? undefined : "nothing")
            else if (operation.kind === "task") holding.over("nothing")
            return undefined
          }
        )
      }

      /** By the record of a key, which an edit replaces. */
      const known = new WeakMap<ApiKey, Bounds>()
      const boundsOf = (key: ApiKey): Bounds => {
        const found = known.get(key)
        if (found !== undefined) return found
        const bounds = kinds.flatMap(({ field, kind }) => {
          const limit = key[field]
          return limit === null ? [] : [{
            kind,
            key: `${key.id}.${kind}`,
            limit,
            windowMs: kind === "concurrent" ? 0 : windowMs
          }]
        })
        known.set(key, bounds)
        return bounds
      }

      const stateOf = (bounds: Bounds, kind: Kind) => {
        const bound = bounds.find((bound) => bound.kind === kind)
        return bound === undefined ? undefined : { limit: bound.limit, ...limits.state(bound) }
      }

      return Admission.of({
        through: (key, asked, serve) => {
          if (!allows(key, asked.model)) return Effect.fail(new ModelNotAllowed({ model: asked.model }))
          const budgetUsd = key.monthlyBudgetUsd
          if (budgetUsd !== null && spending.of(key.id) >= budgetUsd) {
            return Effect.fail(new BudgetSpent({ budgetUsd, retryAfterMs: spending.resetMs() }))
          }
          const bounds = boundsOf(key)
          return bounds.length > 0 ? counted(bounds, asked, serve) : serve(undefined)
        },
        headers: (key, dialect) => {
          const bounds = boundsOf(key)
          if (bounds.length === 0) return undefined
          return () =>
            limitHeaders(
              { requests: stateOf(bounds, "requests"), tokens: stateOf(bounds, "tokens") },
              dialect,
              now()
            )
        }
      })
    })
  )
}

/** A limit of a key. */
interface Bound extends Limit {
  readonly kind: Kind
}

/** Those that a key has, in the order in which requests take of them. */
type Bounds = ReadonlyArray<Bound>

const kinds = [
  { kind: "concurrent", field: "concurrentRequests" },
  { kind: "requests", field: "requestsPerMinute" },
  { kind: "tokens", field: "tokensPerMinute" }
] as const

/** What a request has taken of its key's limits. */
class Holding {
  readonly #bounds: Bounds
  readonly #tokens: number
  readonly #taken: Array<Taken> = []
  #isOver = false

  constructor(bounds: Bounds, tokens: number) {
    this.#bounds = bounds
    this.#tokens = tokens
  }

  /** Of which limit it is to take next; `undefined` where it has all. */
  get next(): Bound | undefined {
    return this.#bounds[this.#taken.length]
  }

  unitsOf({ kind }: Bound): number {
    return kind === "tokens" ? this.#tokens : 1
  }

  add(taken: Taken): void {
    this.#taken.push(taken)
  }

  /** It is not to be served. */
  giveBack(): void {
    for (const taken of this.#taken) taken.settle(0)
  }

  /** As `Over` has it. */
  over(consumed: Parameters<Over>[0]): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const [index, { kind }] of this.#bounds.entries()) {
      if (kind === "concurrent") this.#taken[index]?.settle(0)
      else if (kind === "tokens" && consumed !== undefined) {
        this.#taken[index]?.settle(consumed === "nothing" ? 0 : consumed.inputTokens + consumed.outputTokens)
      }
    }
  }
}

/**
 * Of a request that states more than its key may ever have. What is only an estimate may be too high: a request that is over
 * the limit by that is served alone, with the whole limit set aside for it.
 */
const excessOf = (bounds: Bounds, { stated }: TokenDemand): TokensOverLimit | undefined => {
  const bound = bounds.find(({ kind }) => kind === "tokens")
  if (bound === undefined || stated === undefined || stated.tokens <= bound.limit) return undefined
  return new TokensOverLimit({ ...stated, most: bound.limit })
}

const fieldOf = (decoded: RequestBody) => (name: string): unknown =>
  Predicate.hasProperty(decoded, name) ? decoded[name] : undefined
