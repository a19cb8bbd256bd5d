/** One call to one candidate, made only where its limits, its health and the budget of retries allow it. */
import { Effect, Exit, Predicate } from "effect"
import type { JobError } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import * as Attributes from "../../telemetry/Attributes.ts"
import * as Metrics from "../../telemetry/Metrics.ts"
import * as Span from "../../telemetry/Span.ts"
import type { Answer } from "./Answer.ts"
import * as AttemptTelemetry from "./AttemptTelemetry.ts"
import { retryOf } from "./Course.ts"
import { type Commit, Commitment } from "../transport/Commitment.ts"
import * as Gate from "./Gate.ts"
import * as Health from "./Health.ts"
import { Passed } from "./Passed.ts"
import type { Endpoint } from "../transport/Endpoint.ts"
import type { Call } from "../call/Protocol.ts"
import { protocols } from "../protocols/protocols.ts"
import { RetryBudget } from "./RetryBudget.ts"
import { type Candidate, mayRepeat } from "./Route.ts"

/** What every call for a request has in common. */
export interface Request extends Omit<Call, "endpoint" | "workload"> {
  /** Hears of every call before it is made. */
  readonly onCall?: (endpoint: Pick<Endpoint, "name" | "model">) => void
  /** Comes before a call that must not be made twice. */
  readonly commit?: Commit
}

export interface Attempt {
  /** Has it answered, if it can be called before a time (epoch milliseconds). */
  readonly make: (
    candidate: Candidate,
    request: Request,
    answer: Answer,
    options: { readonly isRetry: boolean; readonly until: number }
  ) => Effect.Effect<Usage | undefined, JobError | Passed>
}

export const make = Effect.gen(function*() {
  const performs = yield* protocols
  const health = yield* Health.make
  const gate = yield* Gate.make
  const fork = Effect.runForkWith(yield* Effect.context<never>())

  const budgets = new Map<string, RetryBudget>()
  const budgetOf = ({ endpoint: { name } }: Candidate): RetryBudget => {
    let budget = budgets.get(name)
    if (budget === undefined) budgets.set(name, budget = new RetryBudget())
    return budget
  }

  const perform = ({ endpoint, workload }: Candidate, request: Request, answer: Answer, isRetry: boolean) => {
    const call: Call = { ...request, workload, endpoint }
    answer.provider = endpoint.name
    answer.attempts++
    request.onCall?.(endpoint)
    const { commit } = request
    const reason = isRetry ? "retry" : answer.attempts === 1 ? "first" : "fallback"
    const made = performs[endpoint.provider.protocol](call, answer)
    const committed = commit === undefined || mayRepeat(endpoint.provider)
      ? made
      : Effect.provideService(made, Commitment, commit)
    return committed.pipe(
      AttemptTelemetry.told(endpoint, request.model, answer),
      Span.around(`${Attributes.genAiOperation(request.operation.name)} ${endpoint.model}`, {
        kind: "client"
      }, Attributes.attempt(request.operation.name, endpoint, answer.attempts, reason))
    )
  }

  /** The call that everybody waits for: it is well as soon as it answers. */
  const probe = (
    candidate: Candidate,
    admission: Health.Admission,
    request: Request,
    answer: Answer,
    isRetry: boolean
  ) =>
    Effect.suspend(() => {
      answer.onStart(() => void fork(health.succeeded(candidate, admission) ?? Effect.void))
      return perform(candidate, request, answer, isRetry)
    }).pipe(Effect.onExit((exit) => {
      answer.onStart(undefined)
      return Exit.hasFails(exit) ? Effect.void : health.abandoned(candidate, admission)
    }))

  const succeeded = (candidate: Candidate, admission: Health.Admission, usage: Usage | undefined) => {
    const news = health.succeeded(candidate, admission)
    return news === undefined ? Effect.succeed(usage) : Effect.as(news, usage)
  }

  const failed = (candidate: Candidate, admission: Health.Admission, permit: Gate.Permit, error: JobError) =>
    health.failed(candidate, admission, error).pipe(
      Effect.andThen(
        Predicate.isTagged(error, "ProviderRateLimited")
          ? gate.slow(candidate, permit, error.retryAfterMs)
          : Effect.void
      ),
      Effect.andThen(Effect.fail(error))
    )

  /** Without a generator: every request comes through here. */
  const call = (
    candidate: Candidate,
    request: Request,
    answer: Answer,
    permit: Gate.Permit,
    isRetry: boolean
  ): Effect.Effect<Usage | undefined, JobError | Passed> =>
    Effect.flatMap(health.admit(candidate), (admission) => {
      answer.queuedMs += permit.waitedMs
      // before it is made: a call counts itself among the attempts
      if (isRetry) Metrics.update(Metrics.retries(candidate.endpoint.name), 1)
      else if (answer.attempts > 0) Metrics.update(Metrics.fallbacks(candidate.endpoint.name), 1)
      return Effect.matchEffect(
        admission.probe
          ? probe(candidate, admission, request, answer, isRetry)
          : perform(candidate, request, answer, isRetry),
        {
          onSuccess: (usage) => succeeded(candidate, admission, usage),
          onFailure: (error) => failed(candidate, admission, permit, error)
        }
      )
    })

  const attempt: Attempt = {
    make: (candidate, request, answer, { isRetry, until }) => {
      const budget = budgetOf(candidate)
      if (!isRetry) {
        budget.deposit(retryOf(candidate).budget)
        return gate.through(candidate, request, until, (permit) => call(candidate, request, answer, permit, false))
      }
      return gate.through(candidate, request, until, (permit) =>
        budget.withdraw()
          ? Effect.tapError(
            call(candidate, request, answer, permit, true),
            (miss) => miss._tag === "Passed" ? Effect.sync(() => budget.deposit(1)) : Effect.void
          )
          : Effect.fail(new Passed("retries", 0)))
    }
  }
  return attempt
})
