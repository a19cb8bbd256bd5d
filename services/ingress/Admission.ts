/**
 * Whether a key may have a request served now: its models, its budget and its limits, which hold over all ingress processes
 * together. Of a key without limits nothing is counted.
 */
import { Cause, Clock, Config, Context, Effect, Exit, Layer, Predicate } from "effect"
import type { Dialect, Operation, RequestBody } from "../../shared/contract/Operation.ts"
import { tokenEstimate } from "../../shared/contract/TokenEstimate.ts"
import type { Usage } from "../../shared/contract/Usage.ts"
import { allows, type ApiKey } from "../../shared/keys/ApiKey.ts"
import { type Limit, Limits } from "../../shared/limits/Limits.ts"
import type { Taken } from "../../shared/limits/Share.ts"
import { Spending } from "../../shared/usage/Spending.ts"
import { BudgetSpent, LimitReached, ModelNotAllowed } from "./IngressError.ts"
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
type Refusal = ModelNotAllowed | BudgetSpent | LimitReached

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
      const windowMs = yield* Config.Int("GATEWAY_LIMIT_WINDOW_MS").pipe(Config.withDefault(60_000))
      const waitMs = yield* Config.Int("GATEWAY_LIMIT_WAIT_MS").pipe(Config.withDefault(1_000))

      const limitOf = (key: ApiKey, kind: Kind, limit: number): Limit => ({
        key: `${key.id}.${kind}`,
        limit,
        windowMs: kind === "concurrent" ? 0 : windowMs
      })

      const take = (key: ApiKey, kind: Kind, limit: number | null, units: number) =>
        limit === null ? Effect.undefined : Effect.mapError(
          limits.take(limitOf(key, kind, limit), units, now() + waitMs),
          ({ retryAfterMs }) => new LimitReached({ limit: kind, most: limit, retryAfterMs })
        )

      const stateOf = (key: ApiKey, kind: Kind, limit: number | null) =>
        limit === null ? undefined : { limit, ...limits.state(limitOf(key, kind, limit)) }

      /** Takes of each limit what a request needs, or of none. */
      const admitted = Effect.fnUntraced(function*(key: ApiKey, tokens: number): Effect.fn.Return<Over, LimitReached> {
        const taken: Array<Taken | undefined> = []
        const takeAll = Effect.gen(function*() {
          taken.push(yield* take(key, "concurrent", key.concurrentRequests, 1))
          taken.push(yield* take(key, "requests", key.requestsPerMinute, 1))
          taken.push(yield* take(key, "tokens", key.tokensPerMinute, tokens))
        })
        yield* Effect.onExit(takeAll, (exit) =>
          Effect.sync(() => {
            if (Exit.isFailure(exit)) { for (const each of taken) each?.settle(0) }
          }))
        const [running, , setAside] = taken
        let isOver = false
        return (consumed) => {
          if (isOver) return
          isOver = true
          running?.settle(0)
          if (consumed === undefined) return
          setAside?.settle(consumed === "nothing" ? 0 : consumed.inputTokens + consumed.outputTokens)
        }
      })

      const counted = <A, E, R>(
        key: ApiKey,
        { bytes, decoded, operation }: Asked,
        serve: (over: Over) => Effect.Effect<A, E, R>
      ) =>
        // what was taken is given back whenever the client leaves; waiting for a limit can be interrupted all the same
        Effect.uninterruptibleMask((restore) =>
          Effect.flatMap(
            admitted(key, tokenEstimate(operation, bytes, fieldOf(decoded))),
            (over) =>
              Effect.onExit(restore(serve(over)), (exit) =>
                Effect.sync(() => {
                  if (Exit.isFailure(exit)) over(Cause.hasInterruptsOnly(exit.cause) ? undefined : "nothing")
                  else if (operation.kind === "task") over("nothing")
                }))
          )
        )

      return Admission.of({
        through: (key, asked, serve) => {
          if (!allows(key, asked.model)) return Effect.fail(new ModelNotAllowed({ model: asked.model }))
          const budgetUsd = key.monthlyBudgetUsd
          if (budgetUsd !== null && spending.of(key.id) >= budgetUsd) {
            return Effect.fail(new BudgetSpent({ budgetUsd, retryAfterMs: spending.resetMs() }))
          }
          return isLimited(key) ? counted(key, asked, serve) : serve(undefined)
        },
        headers: (key, dialect) =>
          isLimited(key)
            ? () =>
              limitHeaders(
                {
                  requests: stateOf(key, "requests", key.requestsPerMinute),
                  tokens: stateOf(key, "tokens", key.tokensPerMinute)
                },
                dialect,
                now()
              )
            : undefined
      })
    })
  )
}

const isLimited = ({ concurrentRequests, requestsPerMinute, tokensPerMinute }: ApiKey): boolean =>
  concurrentRequests !== null || requestsPerMinute !== null || tokensPerMinute !== null

const fieldOf = (decoded: RequestBody) => (name: string): unknown =>
  Predicate.hasProperty(decoded, name) ? decoded[name] : undefined
