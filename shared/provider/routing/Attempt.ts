/** Makes one call to one candidate, if the provider's limits, circuit breaker and retry budget allow it. */
import { Clock, Effect, Exit } from "effect"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { monotonicMs } from "../../bounds/MonotonicClock.ts"
import { isIdempotent } from "../../catalogue/Provider.ts"
import { isUnsent, type JobError, mayBeBilled, type ProviderRateLimited } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as Attributes from "../../telemetry/Attributes.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import type { AnnotatedSink } from "./AnnotatedSink.ts"
import * as AttemptTelemetry from "./AttemptTelemetry.ts"
import { retryOf } from "./AttemptHistory.ts"
import { type Commit, Commitment } from "../transport/Commitment.ts"
import * as Gate from "./Gate.ts"
import * as CircuitBreakers from "../health/CircuitBreakers.ts"
import { shown, type TargetDelay } from "../health/Delays.ts"
import { defaultRetryMs } from "../health/Pacer.ts"
import { Skipped } from "../health/Skipped.ts"
import * as Endpoint from "../transport/Endpoint.ts"
import type { Call } from "../call/Protocol.ts"
import { protocols } from "../protocols/protocols.ts"
import { RetryBudget } from "./RetryBudget.ts"
import type { Candidate } from "./Route.ts"

/** The parts of a request that all its calls share. */
export interface Request extends Omit<Call, "continues" | "endpoint" | "workload" | "answersAs"> {
  /** Whether the body ends with the beginning of the answer. */
  readonly isContinuation?: boolean
  /** Whether no client waits on a connection for the answer. */
  readonly isBackground?: boolean
  /** Called before each call is made; `isRepeated` if the provider may bill the failed call before it. */
  readonly onCall?: (endpoint: Pick<Endpoint.Endpoint, "name" | "model">, isRepeated: boolean) => void
  /** Called while the request waits for a provider: for its pace, its limits, its circuit or the pause before a retry. */
  readonly onWait?: Gate.OnWait
  /** Runs before a call that must not be made twice. */
  readonly commit?: Commit
  /** Takes `commit` back: runs after a call that was not sent, or that the provider has declined. */
  readonly retract?: Commit
}

interface AttemptKind {
  /** Whether this is the request's first target, which answers under the model's name. */
  readonly isFirst: boolean
  /** After `takeRetry`. */
  readonly isRetry: boolean
}

export interface Attempt {
  /** Takes a retry from the provider's budget, for a call at this time (of the monotonic clock). Returns why it cannot, if so. */
  readonly takeRetry: (candidate: Candidate, owner: string, at: number) => Skipped | undefined
  /** Whether the candidate's circuit lets an owner's calls pass. */
  readonly isHealthy: (candidate: Candidate, owner: string) => boolean
  /** Whose calls are delayed or rejected at present. */
  readonly delays: () => ReadonlyArray<TargetDelay>
  /** Calls the candidate if that is allowed before `until` (of the monotonic clock). Otherwise fails with `Skipped`. */
  readonly make: (
    candidate: Candidate,
    request: Request,
    answer: AnnotatedSink,
    options: AttemptKind & { readonly until: number }
  ) => Effect.Effect<Usage | undefined, JobError | Skipped>
}

const callTo = ({ continues, endpoint, workload }: Candidate, request: Request, isFirst: boolean): Call => ({
  ...request,
  workload,
  endpoint: request.isBackground === true ? Endpoint.inBackground(endpoint) : endpoint,
  answersAs: isFirst ? request.model : endpoint.model,
  continues: request.isContinuation === true ? continues : undefined
})

/** Whether a call was made only to find out whether the provider accepts calls again, and it does not. */
const isLostProbe = (error: JobError, { turn }: Gate.Permit): error is ProviderRateLimited =>
  error._tag === "ProviderRateLimited" && turn?.isProbe === true

const probed = ({ retryAfterMs }: ProviderRateLimited): Skipped =>
  new Skipped({ reason: "probed", retryAfterMs: retryAfterMs ?? defaultRetryMs })

export const make = Effect.gen(function*() {
  const { counts, performs } = yield* protocols
  const health = yield* CircuitBreakers.make
  const gate = yield* Gate.make
  const now = monotonicMs(yield* Clock.Clock)

  const budgets = new Map<string, RetryBudget>()
  const budgetOf = ({ endpoint: { name } }: Candidate): RetryBudget => {
    let budget = budgets.get(name)
    if (budget === undefined) budgets.set(name, budget = new RetryBudget())
    return budget
  }

  const perform = (
    candidate: Candidate,
    request: Request,
    answer: AnnotatedSink,
    { isFirst, isRetry }: AttemptKind
  ) => {
    const { endpoint } = candidate
    const call = callTo(candidate, request, isFirst)
    answer.provider = endpoint.name
    answer.attempts++
    request.onCall?.(endpoint, answer.mayBeBilled)
    answer.mayBeBilled = false
    const { commit } = request
    const reason = request.isContinuation === true
      ? "continuation"
      : isRetry
      ? "retry"
      : answer.attempts === 1
      ? "first"
      : "fallback"
    const name = `${Attributes.genAiOperation(request.operation.name)} ${endpoint.model}`
    return Fiberless.inSpan(name, { kind: "client" }, (span) => {
      Attributes.attempt(request.operation.name, endpoint, answer.attempts, reason)(span)
      const performed = performs[endpoint.provider.protocol](call, answer)
      const committed = commit === undefined || isIdempotent(endpoint.provider)
        ? performed
        : Fiberless.provideService(performed, Commitment, commit)
      return AttemptTelemetry.record(endpoint, request.model, answer, span, committed)
    })
  }

  /** Makes a call whose outcome the pace or a circuit waits for: it succeeds as soon as its answer starts. */
  const performWatched = (
    candidate: Candidate,
    admission: CircuitBreakers.Admission,
    permit: Gate.Permit,
    request: Request,
    answer: AnnotatedSink,
    kind: AttemptKind
  ) =>
    Effect.suspend(() => {
      answer.onStart(() => {
        health.recordStart(candidate, admission)
        gate.accepted(candidate, permit)
      })
      return perform(candidate, request, answer, kind)
    }).pipe(Effect.onExit((exit) => {
      answer.onStart(undefined)
      return Exit.hasFails(exit) ? Effect.void : health.recordAbandoned(candidate, admission)
    }))

  const recordSuccess = (
    candidate: Candidate,
    admission: CircuitBreakers.Admission,
    permit: Gate.Permit,
    usage: Usage | undefined
  ) => {
    gate.accepted(candidate, permit)
    const record = health.recordSuccess(candidate, admission)
    return record === undefined ? Effect.succeed(usage) : Effect.as(record, usage)
  }

  const recordFailure = (
    candidate: Candidate,
    { isContinuation = false, retract = Effect.void }: Request,
    answer: AnnotatedSink,
    admission: CircuitBreakers.Admission,
    permit: Gate.Permit,
    error: JobError
  ) => {
    answer.mayBeBilled = mayBeBilled(error)
    // what has begun an answer has done work, whatever its error
    const hasDoneNothing = isUnsent(error) && !answer.hasStarted && !isContinuation
    if (error._tag === "ProviderRateLimited") answer.refused(candidate, gate.refused(candidate, permit, error))
    if (error._tag === "ProviderRejected") gate.accepted(candidate, permit)
    return health.recordFailure(candidate, admission, error).pipe(
      Effect.andThen(hasDoneNothing ? Effect.uninterruptible(retract) : Effect.void),
      Effect.andThen(Effect.fail(isLostProbe(error, permit) && hasDoneNothing ? probed(error) : error))
    )
  }

  const call = (
    candidate: Candidate,
    request: Request,
    answer: AnnotatedSink,
    permit: Gate.Permit,
    kind: AttemptKind
  ): Effect.Effect<Usage | undefined, JobError | Skipped> =>
    Fiberless.flatMap(health.admit(candidate, request.tenant), (admission) => {
      answer.queuedMs += permit.waitedMs
      // before the call, which counts itself among the attempts
      if (answer.mayBeBilled) Metrics.update(Metrics.repeatedCalls(answer.provider), 1)
      if (kind.isRetry) Metrics.update(Metrics.retries(candidate.endpoint.name), 1)
      else if (answer.attempts > 0) Metrics.update(Metrics.fallbacks(candidate.endpoint.name), 1)
      return Fiberless.matchEffect(
        admission.isWatched || gate.isWatched(candidate)
          ? performWatched(candidate, admission, permit, request, answer, kind)
          : perform(candidate, request, answer, kind),
        {
          onSuccess: (usage) => recordSuccess(candidate, admission, permit, usage),
          onFailure: (error) => recordFailure(candidate, request, answer, admission, permit, error)
        }
      )
    })

  const attempt: Attempt = {
    delays: () => shown([...gate.delays(), ...health.delays()]),
    takeRetry: (candidate, owner, at) => {
      const openUntil = health.openUntil(candidate, owner)
      if (openUntil > at) {
        return new Skipped({ reason: "resting", retryAfterMs: Math.ceil(openUntil - now()) })
      }
      return budgetOf(candidate).withdraw() ? undefined : new Skipped({ reason: "retries", retryAfterMs: 0 })
    },
    isHealthy: (candidate, owner) => health.openUntil(candidate, owner) <= now(),
    make: (candidate, request, answer, options) => {
      const { isFirst, isRetry, until } = options
      const { body, onWait, operation, tenant } = request
      const { protocol } = candidate.endpoint.provider
      const calls = Fiberless.suspend(() => counts[protocol](callTo(candidate, request, isFirst)))
      const budget = budgetOf(candidate)
      if (isRetry && answer.isRefusedAlone(candidate)) {
        budget.refund()
        return Effect.fail(new Skipped({ reason: "alone", retryAfterMs: 0 }))
      }
      if (!isRetry) budget.deposit(retryOf(candidate).budget, now())
      const run = (): Effect.Effect<Usage | undefined, JobError | Skipped> =>
        Fiberless.catchError(
          gate.run(
            candidate,
            { owner: tenant, body, operation, calls, onWait },
            until,
            (permit) => call(candidate, request, answer, permit, options)
          ),
          // the gateway chose to probe with this request, which therefore goes on waiting
          (miss) => miss._tag === "Skipped" && miss.reason === "probed" && now() < until ? run() : Effect.fail(miss)
        )
      const made = run()
      return isRetry
        ? Effect.tapError(made, (miss) => miss._tag === "Skipped" ? Effect.sync(() => budget.refund()) : Effect.void)
        : made
    }
  }
  return attempt
})
