/**
 * Answers a request for a model: tries the model's candidates in turn until one starts an answer, then after a pause retries
 * those with transient failures.
 */
import { Array, Clock, Context, Duration, Effect, Layer, Result, Schedule } from "effect"
import { RateLimiter } from "effect/persistence"
import { Catalogue } from "../../catalogue/Catalogue.ts"
import type { Retry } from "../../catalogue/Provider.ts"
import { type JobError, ModelNotFound } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import { AnnotatedSink } from "./AnnotatedSink.ts"
import * as Attempt from "./Attempt.ts"
import { AttemptHistory } from "./AttemptHistory.ts"
import * as CircuitBreakers from "./CircuitBreakers.ts"
import type { Skipped } from "./Skipped.ts"
import { type Candidate, inOrder, routeOf } from "./Route.ts"
import type { Sink } from "../transport/Sink.ts"
import { userOf } from "../call/UserOf.ts"

export interface ProviderRequest extends Attempt.Request {
  /** Until then the request may wait for a provider's limits or for a retry. Epoch milliseconds. */
  readonly deadline: number
  /** How long the request has waited for a worker, in milliseconds. */
  readonly queuedMs: number
}

/** The longest wait for a candidate's limits while there are other candidates, in milliseconds. */
const momentMs = 100

/** The pauses before retries: the time that the providers ask for, plus exponential back-off with jitter. */
const backOff = ({ baseMs, maxMs, times }: Retry, history: AttemptHistory, deadline: number) =>
  Schedule.min([Schedule.exponential(baseMs), Schedule.spaced(maxMs)]).pipe(
    Schedule.jittered,
    Schedule.upTo({ times }),
    Schedule.setInputType<JobError>(),
    Schedule.addDelay(({ now }) => Effect.succeed(history.waitMs(now) ?? 0)),
    Schedule.while(({ duration, now }) =>
      history.waitMs(now) !== undefined && now + Duration.toMillis(duration) <= deadline
    )
  )

export class Providers extends Context.Service<Providers, {
  /** Whether a request for this model may be sent twice; see the catalogue's `idempotent`. */
  readonly isIdempotent: (model: string) => boolean
  /** Writes the answer to the sink. Fails with the last provider's error. */
  readonly perform: (request: ProviderRequest, sink: Sink) => Effect.Effect<Usage | undefined, JobError>
}>()("shared/provider/Providers") {
  static readonly layer = Layer.effect(
    Providers,
    Effect.gen(function*() {
      const catalogue = yield* Catalogue
      const attempt = yield* Attempt.make
      const clock = yield* Clock.Clock

      const soon = () => clock.currentTimeMillisUnsafe() + momentMs
      /** A request may check for free capacity even after its deadline. */
      const late = ({ deadline }: ProviderRequest) => Math.max(deadline, soon())

      /** Tries the candidates until one answers, after the first has failed or was skipped. */
      const failOver = (
        request: ProviderRequest,
        answer: AnnotatedSink,
        candidates: readonly [Candidate, ...ReadonlyArray<Candidate>],
        firstMiss: JobError | Skipped
      ): Effect.Effect<Usage | undefined, JobError> => {
        const [first, ...others] = candidates
        const history = new AttemptHistory(candidates)
        const record = (candidate: Candidate, miss: JobError | Skipped) => {
          history.record(candidate, miss, clock.currentTimeMillisUnsafe())
          if (answer.hasStarted) history.end()
        }

        /** Tries one candidate after another, and waits for each until `until` (epoch milliseconds). */
        const tryEach = Effect.fnUntraced(function*(candidates: ReadonlyArray<Candidate>, until: number) {
          for (const candidate of candidates) {
            if (history.isEnded) break
            if (!history.isEligible(candidate, clock.currentTimeMillisUnsafe())) continue
            const isRetry = history.isRetry(candidate)
            const result = yield* Effect.result(attempt.make(candidate, request, answer, { isRetry, until }))
            if (Result.isSuccess(result)) return result.success
            record(candidate, result.failure)
          }
          return yield* history.error
        })

        /** Tries each candidate once. Waits for a busy one only if no other answers. */
        const tryRound = (round: ReadonlyArray<Candidate>) =>
          candidates.length === 1
            ? tryEach(round, late(request))
            : Effect.catch(
              tryEach(round, soon()),
              (error) => history.busy.length === 0 ? Effect.fail(error) : tryEach(history.busy, late(request))
            )

        /** After a pause, retries the candidates with transient failures. */
        const retryRounds = (error: JobError) => {
          const policy = history.retryPolicy
          if (policy === undefined) return Effect.fail(error)
          // the first run only fails with the error, so that the schedule delays the first round
          let next: Effect.Effect<Usage | undefined, JobError> = Effect.fail(error)
          const rounds = Effect.suspend(() => {
            const now = next
            next = Effect.suspend(() => {
              history.nextRound()
              return tryRound(candidates)
            })
            return now
          })
          return Effect.retry(rounds, backOff(policy, history, request.deadline))
        }

        record(first, firstMiss)
        return Effect.catch(tryRound(others), retryRounds)
      }

      const respond = (request: ProviderRequest, answer: AnnotatedSink, candidates: ReadonlyArray<Candidate>) => {
        if (!Array.isReadonlyArrayNonEmpty(candidates)) return Effect.fail(new ModelNotFound({ model: request.model }))
        const until = candidates.length === 1 ? late(request) : soon()
        // most requests end here and need no history
        return Effect.catch(
          attempt.make(candidates[0], request, answer, { isRetry: false, until }),
          (miss) => failOver(request, answer, candidates, miss)
        )
      }

      return Providers.of({
        isIdempotent: (model) => routeOf(catalogue.current(), model)?.isIdempotent ?? false,
        perform: (request, sink) => {
          const route = routeOf(catalogue.current(), request.model)
          if (route === undefined) return Effect.fail(new ModelNotFound({ model: request.model }))
          const answer = new AnnotatedSink(sink, request.queuedMs)
          return Effect.flatMap(
            inOrder(route, route.sticky ? userOf(request) : undefined),
            (candidates) => respond(request, answer, candidates)
          )
        }
      })
    })
  ).pipe(Layer.provide([CircuitBreakers.layerStore, RateLimiter.layerStoreMemory]))
}
