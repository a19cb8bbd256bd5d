/**
 * Admits requests to a provider, each with all its calls, within the catalogue's limits, which all workers share, and at the pace learned
 * from the provider's 429s. Each wait has its own span.
 */
import { Cause, Clock, Effect, Exit, Metric, Option, Predicate } from "effect"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { monotonicMs, toEpochMs } from "../../bounds/MonotonicClock.ts"
import { type Demand, Holding, limitWindowMs } from "../../bounds/Limit.ts"
import type { JobError } from "../../contract/JobError.ts"
import type { Operation } from "../../contract/Operation.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as Attributes from "../../telemetry/Attributes.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import * as Span from "../../telemetry/Span.ts"
import * as Pace from "../health/Pace.ts"
import { type Calls, oneCall } from "../call/Calls.ts"
import { Skipped } from "../health/Skipped.ts"
import type { Candidate } from "./Route.ts"
import { SharedLimits } from "./SharedLimits.ts"
import * as TokenEstimate from "../call/TokenEstimate.ts"

/** Permission for the calls of one request. */
export interface Permit {
  /** The epoch of the pace, for `recordFailure`. */
  readonly epoch: number
  /** How long the request has waited for the permit, in milliseconds. */
  readonly waitedMs: number
}

/** A request to a candidate. */
export interface Asked {
  readonly body: Uint8Array
  readonly operation: Operation
  /** Finds the number of calls that the request makes to the candidate's provider. Runs only if the provider's limits count calls. */
  readonly calls: Effect.Effect<Calls>
}

export interface Gate {
  /**
   * Runs the call as soon as limits and pace allow it, if that is before `until` (of the monotonic clock, in milliseconds). A skipped
   * call takes no units of the limits.
   */
  readonly run: <E>(
    candidate: Candidate,
    request: Asked,
    until: number,
    call: (permit: Permit) => Effect.Effect<Usage | undefined, E>
  ) => Effect.Effect<Usage | undefined, E | Skipped>
  /** Slows down the calls to the provider if it has answered 429. */
  readonly recordFailure: (candidate: Candidate, permit: Permit, error: JobError) => Effect.Effect<void>
}

const immediate: Permit = { epoch: 0, waitedMs: 0 }

/** The key of a provider's limits. Encoded, because keys allow few characters but a provider's name may have any. */
export const keyOf = (provider: string): string => `provider.${Buffer.from(provider).toString("base64url")}`

export const make = Effect.gen(function*() {
  const shared = yield* SharedLimits
  const pace = yield* Pace.make
  const windowMs = yield* limitWindowMs
  const clock = yield* Clock.Clock
  const now = monotonicMs(clock)
  const epochMs = toEpochMs(clock)

  /** The demands in the order of taking. Requests per minute come last, so that the call follows immediately. */
  const demandsOf = ({ endpoint: { name, provider } }: Candidate, request: Asked, calls: Calls) => {
    const { concurrency, requestsPerMinute, tokensPerMinute } = provider.limits ?? {}
    const demands: Array<Demand> = []
    if (concurrency !== undefined) {
      const limit = { key: `${keyOf(name)}.calls`, limit: concurrency, windowMs: 0 }
      demands.push({ kind: "concurrent", limit, units: Math.min(calls.atOnce, concurrency) })
    }
    if (tokensPerMinute !== undefined) {
      const limit = { key: `${keyOf(name)}.tokens`, limit: tokensPerMinute, windowMs }
      demands.push({ kind: "tokens", limit, units: Math.min(TokenEstimate.of(request), tokensPerMinute) })
    }
    if (requestsPerMinute !== undefined) {
      const limit = { key: `${keyOf(name)}.requests`, limit: requestsPerMinute, windowMs }
      demands.push({ kind: "requests", limit, units: Math.min(calls.all, requestsPerMinute) })
    }
    return demands
  }

  /** Settles the units of a call. A failed call may have used its tokens, so they stay taken; a skipped one has used nothing. */
  const settle = (holding: Holding, exit: Exit.Exit<Usage | undefined, unknown>): void => {
    const usage = Exit.isSuccess(exit) ? exit.value : undefined
    const isSkipped = Exit.isFailure(exit) &&
      Option.getOrUndefined(Cause.findErrorOption(exit.cause)) instanceof Skipped
    if (isSkipped || !holding.isComplete) holding.returnAll()
    else holding.settle(usage && usage.inputTokens + usage.outputTokens)
  }

  const wait = Effect.fnUntraced(
    function*(
      candidate: Candidate,
      holding: Holding,
      until: number
    ): Effect.fn.Return<Permit, Skipped> {
      const { name } = candidate.endpoint
      const startedAt = now()
      const epoch = pace.isHeld(candidate) ? yield* Effect.interruptible(pace.wait(candidate, until)) : 0
      yield* Effect.mapError(
        holding.takeRest(({ limit, units }) => shared.take(limit, units, epochMs(until))),
        ({ _tag, retryAfterMs }) => new Skipped({ reason: _tag === "LimitUnknown" ? "unknown" : "busy", retryAfterMs })
      )
      const waitedMs = now() - startedAt
      yield* Metric.update(Metrics.providerWait(name), waitedMs / 1_000)
      return { epoch, waitedMs }
    },
    Effect.uninterruptible,
    (waiting, { endpoint }) => {
      const describe = Attributes.provider(endpoint)
      return Span.around(`wait for ${endpoint.name}`, {}, describe)(waiting)
    }
  )

  const run: Gate["run"] = (candidate, request, until, call) => {
    // the fast path, by far the most frequent case
    const { limits } = candidate.endpoint.provider
    if (limits === undefined && !pace.isHeld(candidate)) return call(immediate)
    const isCounted = limits?.concurrency !== undefined || limits?.requestsPerMinute !== undefined
    return Fiberless.flatMap(isCounted ? request.calls : Effect.succeed(oneCall), (calls) => {
      const holding = new Holding(demandsOf(candidate, request, calls))
      const isFree = !pace.isHeld(candidate) &&
        holding.takeAvailable(({ limit, units }) => shared.tryTake(limit, units))
      // while it waits, other calls may take the units
      if (!isFree) holding.returnAll()
      const permit = isFree ? Effect.succeed(immediate) : wait(candidate, holding, until)
      return Fiberless.onExit(Fiberless.flatMap(permit, call), (exit) => settle(holding, exit))
    })
  }

  const gate: Gate = {
    run,
    recordFailure: (candidate, { epoch }, error) =>
      Predicate.isTagged(error, "ProviderRateLimited") && candidate.endpoint.provider.limits?.adaptive !== false
        ? pace.slowDown(candidate, epoch, error.retryAfterMs ?? Pace.defaultRetryMs)
        : Effect.void
  }
  return gate
})
