/**
 * Lets as many calls through to a provider as it takes: the limits that the catalogue knows of, which all workers share,
 * and the pace that its 429s have taught. What has to wait does so in a span of its own.
 */
import { Cause, Clock, Config, Effect, Exit, Metric, Option } from "effect"
import { atLeast } from "../../contract/Fields.ts"
import type { Operation } from "../../contract/Operation.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as Attributes from "../../telemetry/Attributes.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import * as Span from "../../telemetry/Span.ts"
import * as Pace from "./Pace.ts"
import { Passed } from "./Passed.ts"
import type { Candidate } from "./Route.ts"
import { type Limit, SharedLimits, type Taken } from "./SharedLimits.ts"
import * as TokenEstimate from "../call/TokenEstimate.ts"

/** Leave to make one call. */
export interface Permit {
  /** For `slow`, should the provider answer 429. */
  readonly epoch: number
  /** How long it had to be waited for, in milliseconds. */
  readonly waitedMs: number
}

export interface Gate {
  /**
   * Makes the call as soon as it may be made, if that is before a time (epoch milliseconds). A call that fails with
   * `Passed` was not made and uses nothing up.
   */
  readonly through: <E>(
    candidate: Candidate,
    request: { readonly body: Uint8Array; readonly operation: Operation },
    until: number,
    call: (permit: Permit) => Effect.Effect<Usage | undefined, E>
  ) => Effect.Effect<Usage | undefined, E | Passed>
  /** The provider has answered 429. */
  readonly slow: (candidate: Candidate, permit: Permit, retryAfterMs: number | null) => Effect.Effect<void>
}

interface Demand {
  readonly kind: "calls" | "requests" | "tokens"
  readonly limit: Limit
  readonly units: number
}

const atOnce: Permit = { epoch: 0, waitedMs: 0 }

/** Any name as a key. */
const keyOf = (provider: string): string => `provider.${Buffer.from(provider).toString("base64url")}`

/**
 * Reads `GATEWAY_LIMIT_WINDOW_MS`: how long the minute of the limits per minute is, in milliseconds (default 60,000; shorter
 * only to see limits at work sooner).
 */
export const make = Effect.gen(function*() {
  const shared = yield* SharedLimits
  const pace = yield* Pace.make
  const windowMs = yield* Config.schema(atLeast(1), "GATEWAY_LIMIT_WINDOW_MS").pipe(Config.withDefault(60_000))

  /** In the order in which they are taken: the one whose moment counts comes last, so that the call follows at once. */
  const demandsOf = ({ endpoint: { name, provider } }: Candidate, request: Parameters<Gate["through"]>[1]) => {
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

  const giveBack = (taken: Array<Taken>): void => {
    for (const { settle } of taken.splice(0)) settle(0)
  }

  /** What a call leaves of what was taken for it; a failed one may well have used up its tokens. */
  const settle = (demands: ReadonlyArray<Demand>, taken: Array<Taken>, exit: Exit.Exit<Usage | undefined, unknown>) => {
    if (Exit.isFailure(exit) && Option.getOrUndefined(Cause.findErrorOption(exit.cause)) instanceof Passed) {
      return giveBack(taken)
    }
    const usage = Exit.isSuccess(exit) ? exit.value : undefined
    for (const [index, { settle }] of taken.entries()) {
      const kind = demands[index]?.kind
      if (kind === "calls") settle(0)
      else if (kind === "tokens" && usage !== undefined) settle(usage.inputTokens + usage.outputTokens)
    }
  }

  const takeAtOnce = (demands: ReadonlyArray<Demand>, taken: Array<Taken>): boolean => {
    for (const { limit, units } of demands) {
      const some = shared.tryTake(limit, units)
      if (some === undefined) {
        giveBack(taken)
        return false
      }
      taken.push(some)
    }
    return true
  }

  const wait = Effect.fnUntraced(function*(
    candidate: Candidate,
    demands: ReadonlyArray<Demand>,
    taken: Array<Taken>,
    until: number,
    restore: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  ): Effect.fn.Return<Permit, Passed> {
    const { name } = candidate.endpoint
    const from = yield* Clock.currentTimeMillis
    const epoch = pace.isHeld(candidate) ? yield* restore(pace.keep(candidate, until)) : 0
    for (const { limit, units } of demands) {
      taken.push(
        yield* shared.take(limit, units, until).pipe(
          Effect.mapError(({ retryAfterMs }) => new Passed("busy", retryAfterMs))
        )
      )
    }
    const waitedMs = (yield* Clock.currentTimeMillis) - from
    yield* Metric.update(Metrics.providerWait(name), waitedMs / 1_000)
    return { epoch, waitedMs }
  })

  const through: Gate["through"] = (candidate, request, until, call) => {
    // by far the most frequent case
    if (candidate.endpoint.provider.limits === undefined && !pace.isHeld(candidate)) return call(atOnce)
    return Effect.uninterruptibleMask((restore) =>
      Effect.suspend(() => {
        const demands = demandsOf(candidate, request)
        const taken: Array<Taken> = []
        let called = false
        const permit = !pace.isHeld(candidate) && takeAtOnce(demands, taken)
          ? Effect.succeed(atOnce)
          : Span.around(`wait for ${candidate.endpoint.name}`, {}, Attributes.provider(candidate.endpoint))(
            wait(candidate, demands, taken, until, restore)
          )
        return permit.pipe(
          Effect.flatMap((permit) => {
            called = true
            return restore(call(permit))
          }),
          Effect.onExit((exit) => Effect.sync(() => called ? settle(demands, taken, exit) : giveBack(taken)))
        )
      })
    )
  }

  const gate: Gate = {
    through,
    slow: (candidate, { epoch }, retryAfterMs) =>
      candidate.endpoint.provider.limits?.adaptive === false
        ? Effect.void
        : pace.slow(candidate, epoch, retryAfterMs ?? Pace.defaultRetryMs)
  }
  return gate
})
