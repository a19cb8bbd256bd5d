/**
 * Gives a model at a provider that fails too often a rest, and then finds out by one request whether it is well again.
 *
 * The circuit is that of `effect/persistence`, kept by each worker for itself. It is driven through its store, for a probe
 * has shown what it can with the first byte of its answer and is not waited for to the end.
 */
import { Duration, Effect, Metric, Predicate, Scope } from "effect"
import { CircuitBreaker } from "effect/persistence"
import { type Breaker, defaultBreaker } from "../../catalogue/Catalogue.ts"
import type { JobError } from "../../contract/JobError.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import { Passed } from "./Passed.ts"
import type { Candidate } from "./Route.ts"

/** Leave to make a call. Everybody else waits for a `probe`. */
export type Admission = CircuitBreaker.Admission

export interface Health {
  readonly admit: (candidate: Candidate) => Effect.Effect<Admission, Passed>
  /** `undefined` where that is no news. */
  readonly succeeded: (candidate: Candidate, admission: Admission) => Effect.Effect<void> | undefined
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

const settingsOf = ({ endpoint }: Candidate): Breaker => endpoint.provider.breaker ?? defaultBreaker

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

/** What is known of a circuit without asking the store: every call begins and ends here. */
interface Circuit {
  /** Leave to make a call while it is closed and has long been so: the same for all. */
  closed: Effect.Effect<Admission> | undefined
  /** How many calls in a row have succeeded. */
  successes: number
}

export const make: Effect.Effect<Health, never, CircuitBreaker.CircuitBreakerStore | Scope.Scope> = Effect.gen(
  function*() {
    const store = yield* CircuitBreaker.CircuitBreakerStore
    const scope = yield* Effect.scope
    const circuits = new Map<string, Circuit>()
    const circuitOf = ({ endpoint, key }: Candidate): Circuit => {
      let circuit = circuits.get(key)
      if (circuit === undefined) {
        circuits.set(key, circuit = { closed: undefined, successes: 0 })
        Metrics.update(Metrics.breakerState(endpoint.name, endpoint.model), level.Closed)
      }
      return circuit
    }

    const admit = (candidate: Candidate, circuit: Circuit): Effect.Effect<Admission, Passed> =>
      Effect.matchEffect(Scope.provide(store.admit(candidate.key), scope), {
        onSuccess: (admission) => {
          if (admission.transition !== undefined) return Effect.as(told(candidate, admission.transition), admission)
          const admitted = Effect.succeed(admission)
          if (!admission.probe && admission.consecutiveOpenings === 0) circuit.closed = admitted
          return admitted
        },
        onFailure: (error) => Effect.fail(resting(error))
      })

    const record = (
      candidate: Candidate,
      { consecutiveOpenings, generation }: Admission,
      outcome: CircuitBreaker.Outcome["_tag"],
      hintMs = 0
    ): Effect.Effect<void> => {
      const settings = settingsOf(candidate)
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
      }).pipe(Effect.matchEffect({
        onSuccess: (transition) => {
          if (transition === undefined) return Effect.void
          circuitOf(candidate).closed = undefined
          return told(candidate, transition)
        },
        onFailure: Effect.die
      }))
    }

    return {
      admit: (candidate) => {
        if (!settingsOf(candidate).enabled) return Effect.succeed(always)
        const circuit = circuitOf(candidate)
        return circuit.closed ?? admit(candidate, circuit)
      },
      succeeded: (candidate, admission) => {
        const circuit = circuitOf(candidate)
        circuit.successes++
        // among the calls that are looked back on there is nothing but successes
        if (circuit.closed !== undefined && circuit.successes > settingsOf(candidate).lastCalls) return undefined
        return record(candidate, admission, "Success")
      },
      failed: (candidate, admission, error) => {
        circuitOf(candidate).successes = 0
        return record(candidate, admission, outcomeOf(error), hintOf(error))
      },
      abandoned: (candidate, admission) => record(candidate, admission, "Ignored")
    }
  }
)

/** Forgets nothing, as it is not asked about everything: there are as many circuits as the catalogues have had candidates. */
export const layerStore = CircuitBreaker.layerStoreMemory({ idleTimeToLive: Duration.infinity })
