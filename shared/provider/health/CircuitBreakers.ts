/**
 * Circuit breakers per provider and model. An open circuit rejects calls; after a while one request probes the provider.
 *
 * Each worker has its own circuits, from `effect/persistence`. This file uses the store of the circuits directly, because a probe
 * succeeds with the first byte of its answer, long before the call ends.
 */
import { Clock, Duration, Effect, Predicate, Scope } from "effect"
import { CircuitBreaker } from "effect/persistence"
import { monotonicMs, steady } from "../../bounds/MonotonicClock.ts"
import { Catalogue, type Snapshot } from "../../catalogue/Catalogue.ts"
import { type Breaker, defaultBreaker } from "../../catalogue/Provider.ts"
import type { JobError } from "../../contract/JobError.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import { Skipped } from "./Skipped.ts"
import { isTarget, type Target } from "./Target.ts"

/** Permission for a call. While a `probe` runs, all other calls are rejected. */
export type Admission = CircuitBreaker.Admission

export interface CircuitBreakers {
  readonly admit: (candidate: Target) => Effect.Effect<Admission, Skipped>
  /** Until when the circuit stays open, in milliseconds of the monotonic clock; `-Infinity` if it is not open. */
  readonly openUntil: (candidate: Target) => number
  /** Records a successful call; `undefined` if there is nothing to record. */
  readonly recordSuccess: (candidate: Target, admission: Admission) => Effect.Effect<void> | undefined
  readonly recordFailure: (candidate: Target, admission: Admission, error: JobError) => Effect.Effect<void>
  /** The gateway has ended the call, which says nothing about the provider. */
  readonly recordAbandoned: (candidate: Target, admission: Admission) => Effect.Effect<void>
}

/** The retry time while a probe runs, in milliseconds. */
const probingMs = 1_000

/** The longest time for which a provider's `retry-after` can keep its circuit open, in milliseconds. */
const maxHintMs = 3_600_000

const notOpen = Number.NEGATIVE_INFINITY

/** The permission if the circuit breaker is disabled. */
const always: Admission = { generation: -1, probe: false, consecutiveOpenings: 0, transition: undefined }

/** The outcome of a failed call for the circuit. Rate limits and the client's errors do not count as failures. */
const outcomeOf = (error: JobError): CircuitBreaker.Outcome["_tag"] => {
  if (Predicate.isTagged(error, "ProviderFailed") || Predicate.isTagged(error, "ProviderTimeout")) return "Failure"
  return Predicate.isTagged(error, "ProviderRejected") ? "Success" : "Ignored"
}

const hintOf = (error: JobError): number => "retryAfterMs" in error ? Math.min(error.retryAfterMs ?? 0, maxHintMs) : 0

const skippedBy = ({ reason }: CircuitBreaker.CircuitBreakerError): Skipped =>
  new Skipped({
    reason: "resting",
    retryAfterMs: reason._tag === "CircuitOpen" ? Math.ceil(Duration.toMillis(reason.retryAfter)) : probingMs
  })

const settingsOf = ({ endpoint }: Target): Breaker => endpoint.provider.breaker ?? defaultBreaker

/** The values of the metric `gateway_provider_breaker_state`. */
const level = { Closed: 0, HalfOpen: 1, Open: 2 } as const

/** Whether calls depend on the candidate's circuit. An edit of the catalogue may remove the target, or disable its breaker. */
const isInUse = ({ endpoint, key }: Target, snapshot: Snapshot): boolean =>
  isTarget(snapshot, key) && (snapshot.providers.get(endpoint.name)?.breaker ?? defaultBreaker).enabled

const report = (
  { endpoint }: Target,
  circuit: Circuit,
  transition: CircuitBreaker.Transition
): Effect.Effect<void> => {
  const { model, name: provider } = endpoint
  circuit.level = level[transition.to]
  const text = transition.to === "Closed" ? "circuit closed" : "circuit half-open: probing the provider"
  return transition.to === "Open"
    ? Effect.logWarning("circuit opened", { provider, model, restMs: Duration.toMillis(transition.retryAfter) })
    : Effect.logInfo(text, { provider, model })
}

/** A circuit's state outside the store: a cache for the start and the end of every call. */
interface Circuit {
  /** The state after the last transition. */
  level: typeof level[keyof typeof level]
  /** The shared permission while the circuit is closed and has never opened. */
  closed: Effect.Effect<Admission> | undefined
  /** Consecutive successful calls. */
  successes: number
  /** See `CircuitBreakers`. */
  openUntil: number
}

export const make: Effect.Effect<
  CircuitBreakers,
  never,
  Catalogue | CircuitBreaker.CircuitBreakerStore | Scope.Scope
> = Effect.gen(
  function*() {
    const catalogue = yield* Catalogue
    const store = yield* CircuitBreaker.CircuitBreakerStore
    const scope = yield* Effect.scope
    const clock = yield* Clock.Clock
    const now = monotonicMs(clock)
    const onSteadyClock = Effect.provideService(Clock.Clock, steady(clock))
    const circuits = new Map<string, Circuit>()
    const gauges: Array<() => void> = []
    yield* Effect.addFinalizer(() => Effect.sync(() => gauges.forEach((forget) => forget())))
    const add = (candidate: Target): Circuit => {
      const { endpoint, key } = candidate
      const circuit: Circuit = { level: level.Closed, closed: undefined, successes: 0, openUntil: notOpen }
      circuits.set(key, circuit)
      const read = () => isInUse(candidate, catalogue.current()) ? circuit.level : level.Closed
      gauges.push(Metrics.observeUnsafe(Metrics.breakerState(endpoint.name, endpoint.model), read))
      return circuit
    }
    const circuitOf = (candidate: Target): Circuit => circuits.get(candidate.key) ?? add(candidate)

    const admit = (candidate: Target, circuit: Circuit): Effect.Effect<Admission, Skipped> =>
      Effect.matchEffect(onSteadyClock(Scope.provide(store.admit(candidate.key), scope)), {
        onSuccess: (admission) => {
          if (admission.transition !== undefined) {
            return Effect.as(report(candidate, circuit, admission.transition), admission)
          }
          const admitted = Effect.succeed(admission)
          if (!admission.probe && admission.consecutiveOpenings === 0) circuit.closed = admitted
          return admitted
        },
        onFailure: (error) => Effect.fail(skippedBy(error))
      })

    const record = (
      candidate: Target,
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
          // a success must not open the circuit, even if it completes the minimum number of calls
          threshold: outcome === "Failure" ? settings.failureRate : Number.POSITIVE_INFINITY,
          minimumCalls: settings.minimumCalls,
          size: settings.lastCalls
        },
        openFor: Duration.millis(Math.max(openMs, hintMs))
      }).pipe(
        onSteadyClock,
        Effect.matchEffect({
          onSuccess: (transition) => {
            if (transition === undefined) return Effect.void
            const circuit = circuitOf(candidate)
            circuit.closed = undefined
            circuit.openUntil = transition.to === "Open"
              ? now() + Duration.toMillis(transition.retryAfter)
              : notOpen
            return report(candidate, circuit, transition)
          },
          onFailure: Effect.die
        })
      )
    }

    return {
      admit: (candidate) => {
        if (!settingsOf(candidate).enabled) return Effect.succeed(always)
        const circuit = circuitOf(candidate)
        return circuit.closed ?? admit(candidate, circuit)
      },
      openUntil: ({ key }) => circuits.get(key)?.openUntil ?? notOpen,
      recordSuccess: (candidate, admission) => {
        const circuit = circuitOf(candidate)
        circuit.successes++
        // nothing to record: the window already consists of successes
        if (circuit.closed !== undefined && circuit.successes > settingsOf(candidate).lastCalls) return undefined
        return record(candidate, admission, "Success")
      },
      recordFailure: (candidate, admission, error) => {
        circuitOf(candidate).successes = 0
        return record(candidate, admission, outcomeOf(error), hintOf(error))
      },
      recordAbandoned: (candidate, admission) => record(candidate, admission, "Ignored")
    }
  }
)

/** The store of the circuits. They never expire, because the cache above hides calls from the store. There is one per candidate. */
export const layerStore = CircuitBreaker.layerStoreMemory({ idleTimeToLive: Duration.infinity })
