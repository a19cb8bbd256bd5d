/**
 * Admits calls to a provider within the catalogue's limits, which all workers share, and at the pace learned from its 429s. A
 * wait has its own span.
 */
import { Cause, Clock, Effect, Exit, Metric, Option } from "effect"
import { type Limit, limitWindowMs, type Taken } from "../../contract/Limit.ts"
import type { Operation } from "../../contract/Operation.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as Attributes from "../../telemetry/Attributes.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import * as Span from "../../telemetry/Span.ts"
import * as Pace from "./Pace.ts"
import { Skipped } from "./Skipped.ts"
import type { Candidate } from "./Route.ts"
import { SharedLimits } from "./SharedLimits.ts"
import * as TokenEstimate from "../call/TokenEstimate.ts"

/** Permission for one call. */
export interface Permit {
  /** For `slowDown`, if the provider answers 429. */
  readonly epoch: number
  /** How long the call has waited for it, in milliseconds. */
  readonly waitedMs: number
}

export interface Gate {
  /**
   * Runs the call as soon as limits and pace allow it, if that is before `until` (epoch milliseconds). A call that is skipped
   * uses up no limit.
   */
  readonly run: <E>(
    candidate: Candidate,
    request: { readonly body: Uint8Array; readonly operation: Operation },
    until: number,
    call: (permit: Permit) => Effect.Effect<Usage | undefined, E>
  ) => Effect.Effect<Usage | undefined, E | Skipped>
  /** The provider has answered 429. */
  readonly slowDown: (candidate: Candidate, permit: Permit, retryAfterMs: number | null) => Effect.Effect<void>
}

interface Demand {
  readonly kind: "calls" | "requests" | "tokens"
  readonly limit: Limit
  readonly units: number
}

const immediate: Permit = { epoch: 0, waitedMs: 0 }

/** Keys allow few characters; a provider's name may have any. */
const keyOf = (provider: string): string => `provider.${Buffer.from(provider).toString("base64url")}`

export const make = Effect.gen(function*() {
  const shared = yield* SharedLimits
  const pace = yield* Pace.make
  const windowMs = yield* limitWindowMs

  /** In the order of taking. Requests per minute come last, so that the call follows at once. */
  const demandsOf = ({ endpoint: { name, provider } }: Candidate, request: Parameters<Gate["run"]>[1]) => {
    const { concurrency, requestsPerMinute, tokensPerMinute } = provider.limits ?? {}
    const demands: Array<Demand> = []
    if (concurrency !== undefined) {
      const limit = { key: `${keyOf(name)}.calls`, limit: concurrency, windowMs: 0 }
      demands.push({ kind: "calls", limit, units: 1 })
    }
    if (tokensPerMinute !== undefined) {
      const limit = { key: `${keyOf(name)}.tokens`, limit: tokensPerMinute, windowMs }
      demands.push({ kind: "tokens", limit, units: Math.min(TokenEstimate.of(request), tokensPerMinute) })
    }
    if (requestsPerMinute !== undefined) {
      const limit = { key: `${keyOf(name)}.requests`, limit: requestsPerMinute, windowMs }
      demands.push({ kind: "requests", limit, units: 1 })
    }
    return demands
  }

  const release = (taken: Array<Taken>): void => {
    for (const { settle } of taken.splice(0)) settle(0)
  }

  /** Settles what was taken for a call. A failed call may have used its tokens: they stay taken. */
  const settle = (demands: ReadonlyArray<Demand>, taken: Array<Taken>, exit: Exit.Exit<Usage | undefined, unknown>) => {
    if (Exit.isFailure(exit) && Option.getOrUndefined(Cause.findErrorOption(exit.cause)) instanceof Skipped) {
      return release(taken)
    }
    const usage = Exit.isSuccess(exit) ? exit.value : undefined
    for (const [index, { settle }] of taken.entries()) {
      const kind = demands[index]?.kind
      if (kind === "calls") settle(0)
      else if (kind === "tokens" && usage !== undefined) settle(usage.inputTokens + usage.outputTokens)
    }
  }

  const tryTakeAll = (demands: ReadonlyArray<Demand>, taken: Array<Taken>): boolean => {
    for (const { limit, units } of demands) {
      const entry = shared.tryTake(limit, units)
      if (entry === undefined) {
        release(taken)
        return false
      }
      taken.push(entry)
    }
    return true
  }

  const wait = Effect.fnUntraced(function*(
    candidate: Candidate,
    demands: ReadonlyArray<Demand>,
    taken: Array<Taken>,
    until: number,
    restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  ): Effect.fn.Return<Permit, Skipped> {
    const { name } = candidate.endpoint
    const startedAt = yield* Clock.currentTimeMillis
    const epoch = pace.isHeld(candidate) ? yield* restore(pace.wait(candidate, until)) : 0
    for (const { limit, units } of demands) {
      taken.push(
        yield* shared.take(limit, units, until).pipe(
          Effect.mapError(({ retryAfterMs }) => new Skipped("busy", retryAfterMs))
        )
      )
    }
    const waitedMs = (yield* Clock.currentTimeMillis) - startedAt
    yield* Metric.update(Metrics.providerWait(name), waitedMs / 1_000)
    return { epoch, waitedMs }
  })

  const run: Gate["run"] = (candidate, request, until, call) => {
    // by far the most frequent case
    if (candidate.endpoint.provider.limits === undefined && !pace.isHeld(candidate)) return call(immediate)
    return Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const demands = demandsOf(candidate, request)
        const taken: Array<Taken> = []
        let called = false
        const permit = !pace.isHeld(candidate) && tryTakeAll(demands, taken)
          ? Effect.succeed(immediate)
          : Span.around(`wait for ${candidate.endpoint.name}`, {}, Attributes.provider(candidate.endpoint))(
            wait(candidate, demands, taken, until, restore)
          )
        return permit.pipe(
          Effect.flatMap((permit) => {
            called = true
            return restore(call(permit))
          }),
          Effect.onExit((exit) => Effect.sync(() => called ? settle(demands, taken, exit) : release(taken)))
        )
      })
    )
  }

  const gate: Gate = {
    run,
    slowDown: (candidate, { epoch }, retryAfterMs) =>
      candidate.endpoint.provider.limits?.adaptive === false
        ? Effect.void
        : pace.slowDown(candidate, epoch, retryAfterMs ?? Pace.defaultRetryMs)
  }
  return gate
})
