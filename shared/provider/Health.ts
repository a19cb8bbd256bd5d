/**
 * Gives a model at a provider that fails too often a rest, and then finds out by one request whether it is well again.
 *
 * The circuit is that of `effect/persistence`, kept by each worker for itself. It is driven through its store, for a probe
 * has shown what it can with the first byte of its answer and is not waited for to the end.
 */
import { Duration, Effect, Metric, Predicate, Scope } from "effect"
import { CircuitBreaker } from "effect/persistence"
import { defaultBreaker } from "../catalogue/Catalogue.ts"
import type { JobError } from "../contract/JobError.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import { Passed } from "./Passed.ts"
import type { Candidate } from "./Route.ts"

/** Leave to make a call. Everybody else waits for a `probe`. */
export type Admission = CircuitBreaker.Admission

export interface Health {
  readonly admit: (candidate: Candidate) => Effect.Effect<Admission, Passed>
  readonly succeeded: (candidate: Candidate, admission: Admission) => Effect.Effect<void>
  readonly failed: (candidate: Candidate, admission: Admission, error: JobError) => Effect.Effect<void>
  /** The call was broken off from this side, which says nothing. */
  readonly abandoned: (candidate: Candidate, admission: Admission) => Effect.Effect<void>
}

/** When to come back while a probe is out, in milliseconds. */
const probingMs = 1_000

/** The longest rest that a provider's own `retry-after` can bring about, in milliseconds. */
const maxHintMs = 3_600_000

/** Leave to call where there is no circuit. */
const always: Admission = { generation: -1, probe: false, consecutiveOpenings: 0, transition: undefined }

/** What a failed call says about its provider: neither its limits nor the client's mistakes are an illness. */
const outcomeOf = (error: JobError): CircuitBreaker.Outcome["_tag"] => {
  if (Predicate.isTagged(error, "ProviderFailed") || Predicate.isTagged(error, "ProviderTimeout")) return "Failure"
  return Predicate.isTagged(error, "ProviderRejected") ? "Success" : "Ignored"
}

const hintOf = (error: JobError): number => "retryAfterMs" in error ? Math.min(error.retryAfterMs ?? 0, maxHintMs) : 0

const resting = ({ reason }: CircuitBreaker.CircuitBreakerError): Passed =>
  new Passed("resting", reason._tag === "CircuitOpen" ? Math.ceil(Duration.toMillis(reason.retryAfter)) : probingMs)

/** As in the metric `gateway_provider_breaker_state`. */
const level = { Closed: 0, HalfOpen: 1, Open: 2 } as const

const told = ({ endpoint }: Candidate, transition: CircuitBreaker.Transition | undefined): Effect.Effect<void> => {
  if (transition === undefined) return Effect.void
  const { model, name: provider } = endpoint
  return Effect.andThen(
    Metric.update(Metrics.breakerState(provider, model), level[transition.to]),
    transition.to === "Open"
      ? Effect.logWarning("provider is given a rest", {
        provider,
        model,
        restMs: Duration.toMillis(transition.retryAfter)
      })
      : Effect.logInfo(transition.to === "Closed" ? "provider is well again" : "provider is probed", {
        provider,
        model
      })
  )
}

export const make: Effect.Effect<Health, never, CircuitBreaker.CircuitBreakerStore | Scope.Scope> = Effect.gen(
  function*() {
    const store = yield* CircuitBreaker.CircuitBreakerStore
    const scope = yield* Effect.scope
    // each made once: it is the first step of every call
    const admissions = new Map<string, Effect.Effect<Admission, Passed>>()

    const admission = (candidate: Candidate): Effect.Effect<Admission, Passed> =>
      Effect.matchEffect(Scope.provide(store.admit(candidate.key), scope), {
        onSuccess: (admission) =>
          admission.transition === undefined
            ? Effect.succeed(admission)
            : Effect.as(told(candidate, admission.transition), admission),
        onFailure: (error) => Effect.fail(resting(error))
      })

    const record = (
      candidate: Candidate,
      { consecutiveOpenings, generation }: Admission,
      outcome: CircuitBreaker.Outcome["_tag"],
      hintMs = 0
    ): Effect.Effect<void> => {
      const settings = candidate.endpoint.provider.breaker ?? defaultBreaker
      const openMs = Math.min(settings.openMs * 2 ** consecutiveOpenings, settings.maxOpenMs)
      return store.record({
        key: candidate.key,
        generation,
        outcome,
        tripPolicy: {
          _tag: "Rate",
          threshold: settings.failureRate,
          minimumCalls: settings.minimumCalls,
          size: settings.lastCalls
        },
        openFor: Duration.millis(Math.max(openMs, hintMs))
      }).pipe(Effect.matchEffect({ onSuccess: (transition) => told(candidate, transition), onFailure: Effect.die }))
    }

    return {
      admit: (candidate) => {
        if (candidate.endpoint.provider.breaker?.enabled === false) return Effect.succeed(always)
        let admit = admissions.get(candidate.key)
        if (admit === undefined) admissions.set(candidate.key, admit = admission(candidate))
        return admit
      },
      succeeded: (candidate, admission) => record(candidate, admission, "Success"),
      failed: (candidate, admission, error) => record(candidate, admission, outcomeOf(error), hintOf(error)),
      abandoned: (candidate, admission) => record(candidate, admission, "Ignored")
    }
  }
)
