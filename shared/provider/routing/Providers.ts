/**
 * From a model's name to an answer: tries the model's candidates in turn until one has begun to answer, and after a pause
 * once more those whose failure may have passed.
 */
import { Clock, Context, Duration, Effect, Layer, Result, Schedule } from "effect"
import { RateLimiter } from "effect/persistence"
import { Catalogue, type Retry } from "../../catalogue/Catalogue.ts"
import { type JobError, ModelNotFound } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import { Answer } from "./Answer.ts"
import * as Attempt from "./Attempt.ts"
import { Course } from "./Course.ts"
import * as Health from "./Health.ts"
import type { Passed } from "./Passed.ts"
import { type Candidate, inOrder, routeOf } from "./Route.ts"
import type { Sink } from "../transport/Sink.ts"
import { userOf } from "../call/UserOf.ts"

export interface ProviderRequest extends Attempt.Request {
  /** Epoch milliseconds: until then it may wait, for a provider's limits or to be sent once more. */
  readonly deadline: number
  /** How long it has waited for a worker, in milliseconds. */
  readonly queuedMs: number
}

/** How long a candidate may take to say whether it is free while there are others to turn to, in milliseconds. */
const momentMs = 100

/** The pauses before a request is sent once more: what its providers ask for and, on top, an exponential one with chance. */
const backOff = ({ baseMs, maxMs, times }: Retry, course: Course, deadline: number) =>
  Schedule.min([Schedule.exponential(baseMs), Schedule.spaced(maxMs)]).pipe(
    Schedule.jittered,
    Schedule.upTo({ times }),
    Schedule.setInputType<JobError>(),
    Schedule.addDelay(({ now }) => Effect.succeed(course.waitMs(now) ?? 0)),
    Schedule.while(({ duration, now }) =>
      course.waitMs(now) !== undefined && now + Duration.toMillis(duration) <= deadline
    )
  )

export class Providers extends Context.Service<Providers, {
  /** Whether a request for this model may be given to a second worker; see the catalogue's `redispatch`. */
  readonly redispatch: (model: string) => "always" | "neverSent"
  /** Answers into the sink. Fails with the last provider's error. */
  readonly perform: (request: ProviderRequest, sink: Sink) => Effect.Effect<Usage | undefined, JobError>
}>()("shared/provider/Providers") {
  static readonly layer = Layer.effect(
    Providers,
    Effect.gen(function*() {
      const catalogue = yield* Catalogue
      const attempt = yield* Attempt.make
      const clock = yield* Clock.Clock

      const note = (course: Course, answer: Answer, candidate: Candidate, miss: JobError | Passed) => {
        course.note(candidate, miss, clock.currentTimeMillisUnsafe())
        if (answer.started) course.end()
      }

      const soon = () => clock.currentTimeMillisUnsafe() + momentMs
      /** Also a request that comes late is told whether there is room for it. */
      const late = ({ deadline }: ProviderRequest) => Math.max(deadline, soon())

      /** Turns to one candidate after the other, waiting for each until a time (epoch milliseconds). */
      const sweep = Effect.fnUntraced(function*(
        request: ProviderRequest,
        answer: Answer,
        course: Course,
        candidates: ReadonlyArray<Candidate>,
        until: number
      ): Effect.fn.Return<Usage | undefined, JobError> {
        for (const candidate of candidates) {
          if (course.isOver) break
          if (!course.isOpen(candidate, clock.currentTimeMillisUnsafe())) continue
          const isRetry = course.isRetry(candidate)
          const result = yield* Effect.result(attempt.make(candidate, request, answer, { isRetry, until }))
          if (Result.isSuccess(result)) return result.success
          note(course, answer, candidate, result.failure)
        }
        return yield* course.verdict
      })

      /** Each of them once. One that is busy is waited for only where no other answers at once. */
      const round = (
        request: ProviderRequest,
        answer: Answer,
        course: Course,
        candidates: ReadonlyArray<Candidate>
      ) =>
        course.candidates.length === 1
          ? sweep(request, answer, course, candidates, late(request))
          : Effect.catch(
            sweep(request, answer, course, candidates, soon()),
            (error) =>
              course.busy.length === 0
                ? Effect.fail(error)
                : sweep(request, answer, course, course.busy, late(request))
          )

      /** After a pause, each of those once more whose failure may have passed. */
      const again = (error: JobError, request: ProviderRequest, answer: Answer, course: Course) => {
        const policy = course.policy
        if (policy === undefined) return Effect.fail(error)
        // the schedule is asked before the first of these
        let next: Effect.Effect<Usage | undefined, JobError> = Effect.fail(error)
        const rounds = Effect.suspend(() => {
          const now = next
          next = Effect.suspend(() => {
            course.nextRound()
            return round(request, answer, course, course.candidates)
          })
          return now
        })
        return Effect.retry(rounds, backOff(policy, course, request.deadline))
      }

      const answered = (request: ProviderRequest, answer: Answer, candidates: ReadonlyArray<Candidate>) => {
        const [first, ...others] = candidates
        if (first === undefined) return Effect.fail(new ModelNotFound({ model: request.model }))
        const until = others.length === 0 ? late(request) : soon()
        // most requests are answered here, and need no account of how they fared
        return Effect.catch(attempt.make(first, request, answer, { isRetry: false, until }), (miss) => {
          const course = new Course(candidates)
          note(course, answer, first, miss)
          return Effect.catch(
            round(request, answer, course, others),
            (error) => again(error, request, answer, course)
          )
        })
      }

      return Providers.of({
        redispatch: (model) => routeOf(catalogue.current(), model)?.redispatch ?? "neverSent",
        perform: (request, sink) => {
          const route = routeOf(catalogue.current(), request.model)
          if (route === undefined) return Effect.fail(new ModelNotFound({ model: request.model }))
          const answer = new Answer(sink, request.queuedMs)
          return Effect.flatMap(
            inOrder(route, route.sticky ? userOf(request) : undefined),
            (candidates) => answered(request, answer, candidates)
          )
        }
      })
    })
  ).pipe(Layer.provide([Health.layerStore, RateLimiter.layerStoreMemory]))
}
