/** Enforces a provider's limits from the catalogue, which all workers share, and slows down after its 429s. Each wait has its own span. */
import { Cause, Clock, Effect, Exit, Metric, Option } from "effect"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { monotonicMs, toEpochMs } from "../../bounds/MonotonicClock.ts"
import { type Demand, Holding, limitWindowMs } from "../../bounds/Limit.ts"
import type { ProviderRateLimited } from "../../contract/JobError.ts"
import type { Operation } from "../../contract/Operation.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as Attributes from "../../telemetry/Attributes.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import * as Span from "../../telemetry/Span.ts"
import * as Pace from "../health/Pace.ts"
import type { Caller, Refusal, Turn } from "../health/TargetPace.ts"
import { type Calls, oneCall } from "../call/Calls.ts"
import { Skipped } from "../health/Skipped.ts"
import type { Candidate } from "./Route.ts"
import { SharedLimits } from "./SharedLimits.ts"
import * as TokenEstimate from "../call/TokenEstimate.ts"

/** Permission for the calls of one request. */
export interface Permit {
  readonly caller: Caller
  /** `undefined` if the catalogue wants no pace. */
  readonly turn: Turn | undefined
  /** How long the request has waited for the permit, in milliseconds. */
  readonly waitedMs: number
}

/** Called when a request begins to wait for a provider. The returned function is called when it no longer waits. */
export type OnWait = (provider: string) => () => void

/** A request to a candidate. */
export interface Asked {
  /** Whose request it is: refusals belong to the owner who got them. */
  readonly owner: string
  readonly onWait?: OnWait | undefined
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
  /** Whether the outcome of a call must be reported as soon as it is known. */
  readonly isWatched: (candidate: Candidate) => boolean
  /** The provider has accepted the call. */
  readonly accepted: (candidate: Candidate, permit: Permit) => void
  /** The provider has answered 429. Returns what that says about the request; `undefined` if the catalogue wants no pace. */
  readonly refused: (candidate: Candidate, permit: Permit, error: ProviderRateLimited) => Refusal | undefined
  readonly delays: Pace.Pace["delays"]
}

/** The key of a provider's limits. Encoded, because keys allow few characters but a provider's name may have any. */
export const keyOf = (provider: string): string => `provider.${Buffer.from(provider).toString("base64url")}`

/** Reports a wait for a provider, and its end, however it ends. */
export const reportWait = <A, E>(
  onWait: OnWait | undefined,
  provider: string,
  waiting: Effect.Effect<A, E>
): Effect.Effect<A, E> =>
  onWait === undefined ? waiting : Effect.acquireUseRelease(
    Effect.sync(() => onWait(provider)),
    () => waiting,
    (onEnd) => Effect.sync(onEnd)
  )

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
      caller: Caller,
      taken: Turn | undefined,
      holding: Holding,
      until: number
    ): Effect.fn.Return<Permit, Skipped> {
      const { name } = candidate.endpoint
      const startedAt = now()
      const turn = taken ??
        (isPaced(candidate) ? yield* Effect.interruptible(pace.wait(candidate, caller, until)) : undefined)
      yield* holding.takeRest(({ limit, units }) => shared.take(limit, units, epochMs(until))).pipe(
        Effect.mapError(({ _tag, retryAfterMs }) =>
          new Skipped({ reason: _tag === "LimitUnknown" ? "unknown" : "busy", retryAfterMs })
        ),
        Effect.onError(() => Effect.sync(() => giveBack(candidate, turn)))
      )
      const waitedMs = now() - startedAt
      yield* Metric.update(Metrics.providerWait(name), waitedMs / 1_000)
      return { caller, turn, waitedMs }
    },
    Effect.uninterruptible,
    (waiting, { endpoint }) => {
      const describe = Attributes.provider(endpoint)
      return Span.around(`wait for ${endpoint.name}`, {}, describe)(waiting)
    }
  )

  const giveBack = (candidate: Candidate, turn: Turn | undefined): void => {
    if (turn !== undefined) pace.giveBack(candidate, turn)
  }

  const run: Gate["run"] = (candidate, request, until, call) => {
    const { limits } = candidate.endpoint.provider
    const caller: Caller = { owner: request.owner, tokens: () => TokenEstimate.most(request) }
    const turn = isPaced(candidate) ? pace.tryTake(candidate, caller) : undefined
    const isReady = turn !== undefined || !isPaced(candidate)
    // the fast path, by far the most frequent case
    if (limits === undefined && isReady) return passing(candidate, call, { caller, turn, waitedMs: 0 })
    const isCounted = limits?.concurrency !== undefined || limits?.requestsPerMinute !== undefined
    return Fiberless.flatMap(isCounted ? request.calls : Effect.succeed(oneCall), (calls) => {
      const holding = new Holding(demandsOf(candidate, request, calls))
      const isFree = isReady && holding.takeAvailable(({ limit, units }) => shared.tryTake(limit, units))
      // while it waits, other calls may take the units
      if (!isFree) holding.returnAll()
      const permit = isFree
        ? Effect.succeed({ caller, turn, waitedMs: 0 })
        : reportWait(request.onWait, candidate.endpoint.name, wait(candidate, caller, turn, holding, until))
      const called = Fiberless.flatMap(permit, (permit) => passing(candidate, call, permit))
      return Fiberless.onExit(called, (exit) => settle(holding, exit))
    })
  }

  /** Makes a call. One that was not sent gives its turn back. */
  const passing = <E>(
    candidate: Candidate,
    call: (permit: Permit) => Effect.Effect<Usage | undefined, E>,
    permit: Permit
  ): Effect.Effect<Usage | undefined, E> =>
    Fiberless.catchError(call(permit), (error) => {
      if (error instanceof Skipped && error.reason !== "probed") giveBack(candidate, permit.turn)
      return Effect.fail(error)
    })

  const gate: Gate = {
    run,
    isWatched: pace.isWatched,
    accepted: (candidate, { turn }) => {
      if (turn !== undefined) pace.accepted(candidate, turn)
    },
    refused: (candidate, { caller, turn }, error) =>
      turn === undefined ? undefined : pace.refused(candidate, turn, caller, error),
    delays: pace.delays
  }
  return gate
})

/** Whether the catalogue wants calls to slow down after a 429. */
const isPaced = ({ endpoint }: Candidate): boolean => endpoint.provider.limits?.adaptive !== false
