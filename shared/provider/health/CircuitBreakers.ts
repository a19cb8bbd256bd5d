/**
 * Circuit breakers per target: an open circuit rejects calls; after a while, requests probe the target. Each worker has its own.
 *
 * Each owner has a circuit of its own, so that the calls that one owner makes to fail are not refused to others. If calls of two owners
 * have failed and none has succeeded since, one circuit for all replaces those. A circuit is made at an owner's first failure; until then
 * the target only counts its successes.
 */
import { Clock, Effect, Predicate, type Scope } from "effect"
import { monotonicMs } from "../../bounds/MonotonicClock.ts"
import { Catalogue, type Snapshot } from "../../catalogue/Catalogue.ts"
import { type Breaker, defaultBreaker } from "../../catalogue/Provider.ts"
import type { JobError } from "../../contract/JobError.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import * as Circuit from "./Circuit.ts"
import type { TargetDelay } from "./Delays.ts"
import { Skipped } from "./Skipped.ts"
import { isTarget, type Target } from "./Target.ts"

/** Permission for a call of an owner. */
export interface Admission {
  readonly owner: string
  readonly at: number
  /** The circuit that has admitted the call; `undefined` if there was none. */
  readonly by: { readonly circuit: Circuit.Circuit; readonly admission: Circuit.Admission } | undefined
  /** Whether the start of the answer must be recorded. */
  readonly isWatched: boolean
}

export interface CircuitBreakers {
  readonly admit: (target: Target, owner: string) => Effect.Effect<Admission, Skipped>
  /** Until when the circuit rejects the owner's calls, in milliseconds of the monotonic clock; `-Infinity` if it is not open. */
  readonly openUntil: (target: Target, owner: string) => number
  /** The answer to a watched call has begun. */
  readonly recordStart: (target: Target, admission: Admission) => void
  /** Records a successful call. Returns what is to be logged about it. */
  readonly recordSuccess: (target: Target, admission: Admission) => Effect.Effect<void> | undefined
  readonly recordFailure: (target: Target, admission: Admission, error: JobError) => Effect.Effect<void>
  /** The gateway has ended the call, which says nothing about the provider. */
  readonly recordAbandoned: (target: Target, admission: Admission) => Effect.Effect<void>
  /** The circuits that are not closed. */
  readonly delays: () => ReadonlyArray<TargetDelay>
}

/** The longest time for which a provider's `retry-after` can keep its circuit open, in milliseconds. */
const maxHintMs = 3_600_000

/** How many owners with failures a target knows, and for how long without calls, in milliseconds. The oldest are forgotten. */
const mostOwners = 1_000
const unusedMs = 10 * 60_000

/** The permission if the circuit breaker is disabled. */
const always: Admission = { owner: "", at: 0, by: undefined, isWatched: false }

/** The admission by a circuit that did not exist when its call was sent. */
const earlier: Circuit.Admission = { generation: 0, isProbe: false }

/**
 * The outcome of a failed call for the circuit. The client's errors prove that the provider works. Rate limits say nothing about calls
 * that are not refused, but a provider that sends them is back. A result that cannot be fetched is at another server.
 */
const outcomeOf = (error: JobError, isProbe: boolean): Circuit.Outcome => {
  if (Predicate.isTagged(error, "ProviderTimeout")) return "failure"
  if (Predicate.isTagged(error, "ProviderFailed")) return error.reason === "result" ? "neither" : "failure"
  if (Predicate.isTagged(error, "ProviderRejected")) return "success"
  return isProbe && Predicate.isTagged(error, "ProviderRateLimited") ? "success" : "neither"
}

const hintOf = (error: JobError): number => "retryAfterMs" in error ? Math.min(error.retryAfterMs ?? 0, maxHintMs) : 0

const settingsOf = ({ endpoint }: Target): Breaker => endpoint.provider.breaker ?? defaultBreaker

/** The values of the metric `gateway_provider_breaker_state`. */
const levels: Readonly<Record<Circuit.State, number>> = { closed: 0, "half open": 1, open: 2 }

/** Whether calls depend on the target's circuits. An edit of the catalogue may remove the target, or disable its breaker. */
const isInUse = ({ endpoint, key }: Target, snapshot: Snapshot): boolean =>
  isTarget(snapshot, key) && (snapshot.providers.get(endpoint.name)?.breaker ?? defaultBreaker).enabled

/** A part of the former durations in the usual one. */
const smoothing = 7 / 8

/** The circuits of one target. */
class Circuits {
  readonly target: Target
  /** The circuit for all owners, if it has replaced theirs. */
  shared: Circuit.Circuit | undefined
  readonly owners = new Map<string, Circuit.Circuit>()
  #successes = 0
  /** Failed calls since the last success, the owner of the first, and whether there are others. */
  #failures = 0
  #failing: string | undefined
  #areSeveral = false
  /** Failed calls since the last one that was successful to its end. */
  #incomplete = 0
  /** How long successful calls take, in milliseconds. */
  usualMs = Number.POSITIVE_INFINITY
  #sweepAt = Number.NEGATIVE_INFINITY

  constructor(target: Target) {
    this.target = target
  }

  /** Whether no call has failed lately, so that there are no circuits. */
  get isSound(): boolean {
    return this.#failures === 0 && this.owners.size === 0 && this.shared === undefined
  }

  /** Whether calls have failed since the last answer. */
  get isDoubtful(): boolean {
    return this.#failures > 0
  }

  get settings(): Breaker {
    return settingsOf(this.target)
  }

  /** The circuit for an owner's calls. */
  of(owner: string): Circuit.Circuit | undefined {
    return this.shared ?? this.owners.get(owner)
  }

  succeeded(tookMs: number): void {
    this.#successes++
    this.#incomplete = 0
    this.hasAnswered()
    const isFirst = this.usualMs === Number.POSITIVE_INFINITY
    this.usualMs = isFirst ? tookMs : smoothing * this.usualMs + (1 - smoothing) * tookMs
  }

  /** An answer has begun. */
  hasAnswered(): void {
    this.#failures = 0
    this.#failing = undefined
    this.#areSeveral = false
  }

  /** A call of this owner has failed. Returns the circuit that counts it. */
  failed(owner: string, now: number, restMs: number): Circuit.Circuit {
    this.#failures++
    this.#incomplete++
    this.#areSeveral ||= this.#failing !== undefined && this.#failing !== owner
    this.#failing ??= owner
    if (this.shared !== undefined) return this.shared
    if (this.#areSeveral && this.#failures >= this.settings.minimumCalls) {
      const circuits = [...this.owners.values()]
      this.shared = new Circuit.Circuit(this.settings, now)
      const longestMs = Math.max(restMs, ...circuits.map(({ openUntil }) => openUntil - now))
      this.shared.open(now, longestMs, Math.max(0, ...circuits.map(({ openings }) => openings)))
      this.owners.clear()
      return this.shared
    }
    let circuit = this.owners.get(owner)
    if (circuit === undefined) {
      const [oldest = owner] = this.owners.keys()
      if (this.owners.size >= mostOwners) this.owners.delete(oldest)
      this.owners.set(owner, circuit = new Circuit.Circuit(this.settings, now, this.#successes))
    }
    return circuit
  }

  /** Forgets circuits without failures, and those of owners that no longer call. */
  sweep(owner: string, now: number): void {
    if (this.shared?.isSound(now) === true) this.shared = undefined
    if (this.owners.get(owner)?.isSound(now) === true) this.owners.delete(owner)
    if (now < this.#sweepAt) return
    this.#sweepAt = now + unusedMs / 10
    for (const [each, circuit] of this.owners) if (now - circuit.usedAt > unusedMs) this.owners.delete(each)
  }

  /** The level of the metric: that for all calls, or the highest of an owner while no call succeeds. */
  level(now: number): number {
    const isDown = this.#incomplete >= this.settings.minimumCalls
    const circuits = this.shared !== undefined ? [this.shared] : isDown ? [...this.owners.values()] : []
    return Math.max(levels.closed, ...circuits.map((circuit) => levels[circuit.stateAt(now)]))
  }
}

export const make: Effect.Effect<CircuitBreakers, never, Catalogue | Scope.Scope> = Effect.gen(function*() {
  const catalogue = yield* Catalogue
  const now = monotonicMs(yield* Clock.Clock)
  const targets = new Map<string, Circuits>()
  const gauges: Array<() => void> = []
  yield* Effect.addFinalizer(() => Effect.sync(() => gauges.forEach((forget) => forget())))

  const add = (target: Target): Circuits => {
    const circuits = new Circuits(target)
    const { endpoint: { model, name } } = target
    targets.set(target.key, circuits)
    const read = () => isInUse(target, catalogue.current()) ? circuits.level(now()) : levels.closed
    gauges.push(Metrics.observeUnsafe(Metrics.breakerState(name, model), read))
    return circuits
  }
  const of = (target: Target): Circuits => targets.get(target.key) ?? add(target)

  /** What is to be logged about a circuit: the change of its state, if it has changed. */
  const report = (
    { shared, target: { endpoint: { model, name: provider } } }: Circuits,
    circuit: Circuit.Circuit,
    owner: string,
    at: number
  ): Effect.Effect<void> | undefined => {
    const state = circuit.stateAt(at)
    if (state === circuit.reported) return undefined
    circuit.reported = state
    const about = { provider, model, ...(circuit === shared ? {} : { owner }) }
    return state === "open"
      ? Effect.logWarning("circuit opened", { ...about, restMs: circuit.openUntil - at })
      : Effect.logInfo(state === "closed" ? "circuit closed" : "circuit half-open: probing the provider", about)
  }

  /** Records an outcome. Returns what is to be logged about it. */
  const record = (
    target: Target,
    { by, owner }: Admission,
    outcome: Circuit.Outcome,
    restMs = 0
  ): Effect.Effect<void> | undefined => {
    const circuits = of(target)
    const at = now()
    const known = circuits.of(owner)
    const circuit = outcome === "failure" ? circuits.failed(owner, at, restMs) : known
    if (circuit === undefined) return undefined
    if (by?.circuit === circuit) circuit.record(by.admission, outcome, at, restMs)
    // a circuit that was just opened for all has counted the call
    else if (circuit === known || circuit !== circuits.shared) circuit.record(earlier, outcome, at, restMs)
    return report(circuits, circuit, owner, at)
  }

  return {
    admit: (target, owner) => {
      if (!settingsOf(target).enabled) return Effect.succeed(always)
      const circuits = of(target)
      const at = now()
      if (circuits.isSound) return Effect.succeed({ owner, at, by: undefined, isWatched: false })
      const former = circuits.of(owner)
      const closed = former === undefined ? undefined : report(circuits, former, owner, at)
      circuits.sweep(owner, at)
      const circuit = circuits.of(owner)
      const isWatched = circuits.isDoubtful
      if (circuit === undefined) return logged(closed, { owner, at, by: undefined, isWatched })
      const admission = circuit.admit(at, circuits.usualMs)
      if (typeof admission === "number") {
        return Effect.fail(new Skipped({ reason: "resting", retryAfterMs: Math.ceil(admission) }))
      }
      const admitted = { owner, at, by: { circuit, admission }, isWatched: isWatched || admission.isProbe }
      return logged(report(circuits, circuit, owner, at) ?? closed, admitted)
    },
    openUntil: ({ key }, owner) => targets.get(key)?.of(owner)?.openUntil ?? Number.NEGATIVE_INFINITY,
    recordStart: (target, { by }) => {
      of(target).hasAnswered()
      if (by?.admission.isProbe === true) by.circuit.record(by.admission, "success", now())
    },
    recordSuccess: (target, admission) => {
      if (!settingsOf(target).enabled) return undefined
      const circuits = of(target)
      const { isSound } = circuits
      circuits.succeeded(now() - admission.at)
      return isSound ? undefined : record(target, admission, "success")
    },
    recordFailure: (target, admission, error) =>
      Effect.suspend(() => {
        if (!settingsOf(target).enabled) return Effect.void
        const outcome = outcomeOf(error, admission.by?.admission.isProbe === true)
        return record(target, admission, outcome, hintOf(error)) ?? Effect.void
      }),
    recordAbandoned: (target, admission) =>
      Effect.suspend(() => {
        if (!settingsOf(target).enabled) return Effect.void
        return record(target, admission, "neither") ?? Effect.void
      }),
    delays: () => {
      const at = now()
      return [...targets.values()].flatMap(({ owners, shared, target: { endpoint: { model, name: provider } } }) => {
        const all = [...(shared === undefined ? [] : [[null, shared] as const]), ...owners]
        return all.filter(([, circuit]) => circuit.stateAt(at) !== "closed").map(([owner, circuit]) => ({
          ...{ provider, model, owner, perMinute: null, waiting: 0 },
          cause: "failures" as const,
          forMs: Math.max(0, circuit.openUntil - at)
        }))
      })
    }
  }
})

const logged = (log: Effect.Effect<void> | undefined, admission: Admission): Effect.Effect<Admission> =>
  log === undefined ? Effect.succeed(admission) : Effect.as(log, admission)
