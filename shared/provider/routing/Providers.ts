/** Answers a request for a model: calls candidates until one starts an answer, in the steps of `AttemptHistory.ts`. */
import { Array, Clock, Context, Effect, Layer, Random, Result } from "effect"
import { RateLimiter } from "effect/persistence"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { Catalogue } from "../../catalogue/Catalogue.ts"
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

      /** Takes one step after another, after the first candidate has failed or was skipped. */
      const failOver = Effect.fnUntraced(function*(
        request: ProviderRequest,
        answer: AnnotatedSink,
        candidates: readonly [Candidate, ...ReadonlyArray<Candidate>],
        firstMiss: JobError | Skipped
      ) {
        const history = new AttemptHistory(candidates, request.deadline)
        const now = () => clock.currentTimeMillisUnsafe()
        const record = (candidate: Candidate, miss: JobError | Skipped) =>
          Effect.map(Random.next, (chance) => {
            history.record(candidate, miss, now(), chance)
            if (answer.hasStarted) history.end()
          })

        yield* record(candidates[0], firstMiss)
        for (;;) {
          const step = history.next(now())
          if (step.kind === "fail") return yield* step.error
          const { at, candidate, isRetry, waits } = step
          // before the pause, which would be in vain
          const refusal = isRetry ? attempt.takeRetry(candidate, at) : undefined
          if (refusal !== undefined) {
            yield* record(candidate, refusal)
            continue
          }
          if (at > now()) yield* Effect.sleep(at - now())
          const isFirst = candidate === candidates[0]
          const until = waits ? late(request) : soon()
          const result = yield* Effect.result(attempt.make(candidate, request, answer, { isFirst, isRetry, until }))
          if (Result.isSuccess(result)) return result.success
          yield* record(candidate, result.failure)
        }
      })

      const respond = (request: ProviderRequest, answer: AnnotatedSink, candidates: ReadonlyArray<Candidate>) => {
        if (!Array.isReadonlyArrayNonEmpty(candidates)) return Effect.fail(new ModelNotFound({ model: request.model }))
        const until = candidates.length === 1 ? late(request) : soon()
        // most requests end here and need no history
        return Fiberless.catchError(
          attempt.make(candidates[0], request, answer, { isFirst: true, isRetry: false, until }),
          (miss) => failOver(request, answer, candidates, miss)
        )
      }

      return Providers.of({
        isIdempotent: (model) => routeOf(catalogue.current(), model)?.isIdempotent ?? false,
        perform: (request, sink) => {
          const route = routeOf(catalogue.current(), request.model)
          if (route === undefined) return Effect.fail(new ModelNotFound({ model: request.model }))
          return Fiberless.suspend(({ context }) => {
            const answer = new AnnotatedSink(sink, request.queuedMs)
            const random = Context.get(context, Random.Random)
            return respond(request, answer, inOrder(route, random, route.sticky ? userOf(request) : undefined))
          })
        }
      })
    })
  ).pipe(Layer.provide([CircuitBreakers.layerStore, RateLimiter.layerStoreMemory]))
}
