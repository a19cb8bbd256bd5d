/** One call to one candidate, made only where its limits, its health and the budget of retries allow it. */
import { Effect, Exit, Metric, Predicate, Result } from "effect"
import type { JobError } from "../contract/JobError.ts"
import type { Usage } from "../contract/Usage.ts"
import * as Attributes from "../telemetry/Attributes.ts"
import * as Metrics from "../telemetry/Metrics.ts"
import * as Span from "../telemetry/Span.ts"
import type { Answer } from "./Answer.ts"
import { retryOf } from "./Course.ts"
import * as Gate from "./Gate.ts"
import * as Health from "./Health.ts"
import { Passed } from "./Passed.ts"
import type { Call } from "./Protocol.ts"
import { protocols } from "./protocols.ts"
import { RetryBudget } from "./RetryBudget.ts"
import type { Candidate } from "./Route.ts"

/** What every call for a request has in common. */
export type Request = Omit<Call, "endpoint">

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

  const perform = ({ endpoint }: Candidate, request: Request, answer: Answer) => {
    const call: Call = { ...request, endpoint }
    answer.provider = endpoint.name
    answer.attempts++
    return performs[endpoint.provider.protocol](call, answer).pipe(
      Effect.tapError((error) => Effect.annotateCurrentSpan(Attributes.failure(error))),
      Span.around(`${request.operation.name} ${request.model}`, {
        kind: "client",
        attributes: Attributes.attempt(call, answer.attempts)
      })
    )
  }

  /** The call that everybody waits for: it is well as soon as it answers. */
  const probe = (candidate: Candidate, admission: Health.Admission, request: Request, answer: Answer) =>
    Effect.suspend(() => {
      answer.onStart = () => void fork(health.succeeded(candidate, admission))
      return perform(candidate, request, answer)
    }).pipe(Effect.onExit((exit) => {
      answer.onStart = undefined
      return Exit.hasFails(exit) ? Effect.void : health.abandoned(candidate, admission)
    }))

  const call = Effect.fnUntraced(function*(
    candidate: Candidate,
    request: Request,
    answer: Answer,
    isRetry: boolean,
    permit: Gate.Permit
  ): Effect.fn.Return<Usage | undefined, JobError | Passed> {
    const provider = candidate.endpoint.name
    const budget = budgetOf(candidate)
    if (isRetry && !budget.withdraw()) return yield* Effect.fail(new Passed("retries", 0))
    const admission = yield* health.admit(candidate)
    if (isRetry) yield* Metric.update(Metrics.retries(provider), 1)
    else budget.deposit(retryOf(candidate).budget)
    answer.queuedMs += permit.waitedMs

    const result = yield* Effect.result(
      admission.probe ? probe(candidate, admission, request, answer) : perform(candidate, request, answer)
    )
    if (Result.isSuccess(result)) {
      yield* health.succeeded(candidate, admission)
      yield* Metric.update(Metrics.attempts(provider, "success"), 1)
      return result.success
    }
    const error = result.failure
    yield* health.failed(candidate, admission, error)
    yield* Metric.update(Metrics.attempts(provider, error._tag), 1)
    if (Predicate.isTagged(error, "ProviderRateLimited")) yield* gate.slow(candidate, permit, error.retryAfterMs)
    return yield* error
  })

  const attempt: Attempt = {
    make: (candidate, request, answer, { isRetry, until }) =>
      gate.through(candidate, request, until, (permit) => call(candidate, request, answer, isRetry, permit))
  }
  return attempt
})
