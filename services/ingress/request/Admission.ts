/**
 * Admits requests by their key's models, budget and limits, which hold over all ingress processes together. Requests of a
 * key without limits are not counted.
 */
import { Clock, Config, Context, Effect, Exit, Layer, Predicate } from "effect"
import { atLeast } from "../../../shared/contract/Fields.ts"
import { Holding, type Limit, limitWindowMs } from "../../../shared/bounds/Limit.ts"
import { BudgetSpent, ModelNotAllowed } from "../../../shared/contract/JobError.ts"
import type { Dialect, Operation, RequestBody } from "../../../shared/contract/Operation.ts"
import { type TokenDemand, tokenDemand } from "../../../shared/contract/TokenEstimate.ts"
import type { Usage } from "../../../shared/contract/Usage.ts"
import { allows, type ApiKey } from "../../../shared/keys/ApiKey.ts"
import { Limits } from "../../../shared/limits/Limits.ts"
import { Spending } from "../../../shared/usage/Spending.ts"
import { KeyLimitReached, TokensOverLimit } from "../errors/IngressError.ts"
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
  /** Whether its work comes later, and takes units then. */
  readonly isLater?: boolean
}

type Kind = KeyLimitReached["limit"]
type Refusal = ModelNotAllowed | BudgetSpent | KeyLimitReached | TokensOverLimit

export class Admission extends Context.Service<Admission, {
  /**
   * Takes what the request needs from the key's limits, at once or after a short wait. The caller must settle the request;
   * `undefined` if the key has no limits.
   */
  readonly admit: (
    key: ApiKey,
    request: AdmissionRequest
  ) => Effect.Effect<Settle | undefined, Refusal>
  /** Whether the key may use the model, and has a budget left. */
  readonly check: (key: ApiKey, model: string) => Effect.Effect<void, ModelNotAllowed | BudgetSpent>
  /** Takes what the work of a request needs that came earlier, alone or as a line of a batch. */
  readonly admitWork: (
    key: ApiKey,
    tokens: number,
    inBatch: boolean
  ) => Effect.Effect<Settle | undefined, KeyLimitReached>
  /** Takes one of the key's requests, for a request that only stores something. */
  readonly admitUpload: (key: ApiKey) => Effect.Effect<void, KeyLimitReached>
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

      /** Waits for the missing units. */
      const takeRest = (holding: Holding): Effect.Effect<void, KeyLimitReached> =>
        holding.takeRest(({ kind, limit, units }) =>
          Effect.mapError(
            limits.take(limit, units, now() + waitMs),
            ({ retryAfterMs }) => new KeyLimitReached({ limit: kind, max: limit.limit, retryAfterMs })
          )
        )

      const take = (keyLimits: KeyLimits, tokens: number): Effect.Effect<Settle, KeyLimitReached> => {
        const holding = new Holding(
          keyLimits.map((limit) => ({ kind: limit.kind, limit, units: limit.kind === "tokens" ? tokens : 1 }))
        )
        const settle: Settle = (consumed) =>
          holding.settle(consumed === "nothing" ? 0 : consumed && consumed.inputTokens + consumed.outputTokens)
        if (holding.takeAvailable(({ limit, units }) => limits.tryTake(limit, units))) return Effect.succeed(settle)
        // units are returned even if the client disconnects
        return Effect.onExitPrimitive(Effect.as(Effect.uninterruptible(takeRest(holding)), settle), (exit) => {
          if (Exit.isFailure(exit)) holding.returnAll()
          return undefined
        })
      }

      /** The limits by the key's record, which every edit replaces. */
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

      const refusalOf = (key: ApiKey, model: string): ModelNotAllowed | BudgetSpent | undefined => {
        if (!allows(key, model)) return new ModelNotAllowed({ model })
        const budgetUsd = key.monthlyBudgetUsd
        return budgetUsd !== null && spending.of(key.id) >= budgetUsd
          ? new BudgetSpent({ budgetUsd, retryAfterMs: spending.resetMs() })
          : undefined
      }

      return Admission.of({
        admit: (key, request) => {
          const refusal = refusalOf(key, request.model)
          if (refusal !== undefined) return Effect.fail(refusal)
          const keyLimits = limitsOf(key)
          if (keyLimits.length === 0) return noSettle
          const demand = demandOf(request)
          const excess = excessOf(keyLimits, demand)
          if (excess !== undefined) return Effect.fail(excess)
          const isNow = ({ kind }: KeyLimit) => request.isLater !== true || kind === "requests"
          return take(keyLimits.filter(isNow), demand.tokens)
        },
        check: (key, model) => {
          const refusal = refusalOf(key, model)
          return refusal === undefined ? Effect.void : Effect.fail(refusal)
        },
        admitWork: (key, tokens, inBatch) => {
          const usual = limitsOf(key)
          const keyLimits = inBatch
            ? [batchLimitOf(key), ...usual.filter(({ kind }) => kind === "tokens")]
            : usual.filter(({ kind }) => kind !== "requests")
          return keyLimits.length > 0 ? take(keyLimits, tokens) : noSettle
        },
        admitUpload: (key) => {
          const keyLimits = limitsOf(key).filter(({ kind }) => kind === "requests")
          return keyLimits.length > 0 ? Effect.asVoid(take(keyLimits, 0)) : Effect.void
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

/** Stands for the limit of concurrent requests. */
const batchLimitOf = ({ batchConcurrency, id }: ApiKey): KeyLimit => ({
  kind: "concurrent",
  key: `${id}.batch`,
  limit: batchConcurrency,
  windowMs: 0
})

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

/**
 * The error of a request that states more tokens than its key's limit. Estimates may be too high, so a request whose
 * estimate exceeds the limit reserves the whole limit instead.
 */
const excessOf = (limits: KeyLimits, { stated }: TokenDemand): TokensOverLimit | undefined => {
  const limit = limits.find(({ kind }) => kind === "tokens")
  if (limit === undefined || stated === undefined || stated.tokens <= limit.limit) return undefined
  return new TokensOverLimit({ ...stated, max: limit.limit })
}

/** Of a key without limits. */
const noSettle = Effect.succeed(undefined)

/** The tokens that a request may use. */
export const demandOf = ({ bytes, decoded, operation }: AdmissionRequest): TokenDemand =>
  tokenDemand(operation, bytes, (name) => Predicate.hasProperty(decoded, name) ? decoded[name] : undefined)
