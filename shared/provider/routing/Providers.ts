/** Answers a request for a model: calls candidates until one starts an answer, in the steps of `AttemptHistory.ts`. */
import { Array, Clock, Context, Effect, Layer, Random, Result } from "effect"
import { RateLimiter } from "effect/persistence"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { Catalogue } from "../../catalogue/Catalogue.ts"
import { type JobError, ModelNotFound, ProviderFailed } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import { AnnotatedSink } from "./AnnotatedSink.ts"
import * as Attempt from "./Attempt.ts"
import { AttemptHistory } from "./AttemptHistory.ts"
import * as ContinuedAnswer from "../exchange/continuation/ContinuedAnswer.ts"
import * as CircuitBreakers from "./CircuitBreakers.ts"
import { momentMs } from "./Pace.ts"
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

      const now = () => clock.currentTimeMillisUnsafe()
      const soon = () => now() + momentMs
      /** A request may check for free capacity even after its deadline. */
      const late = ({ deadline }: ProviderRequest) => Math.max(deadline, soon())

      /** Takes one step after another, after the first candidate has failed or was skipped. */
      const failOver = Effect.fnUntraced(function*(
        first: ProviderRequest,
        answer: AnnotatedSink,
        candidates: readonly [Candidate, ...ReadonlyArray<Candidate>],
        firstMiss: JobError | Skipped,
        continued: ContinuedAnswer.ContinuedAnswer | undefined
      ) {
        let request = first
        const history = new AttemptHistory(candidates, request.deadline)
        const record = Effect.fnUntraced(function*(candidate: Candidate, miss: JobError | Skipped) {
          const hasStarted = answer.hasStarted
          const rest = hasStarted && continued !== undefined ? yield* continued.resume : undefined
          if (rest !== undefined) {
            history.continueAt(now())
            request = { ...request, body: rest, isContinuation: true }
          }
          history.record(candidate, miss, now(), yield* Random.next, hasStarted && continued?.wasSilent)
          if (hasStarted && rest === undefined) history.end()
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
          if (Result.isFailure(result)) yield* record(candidate, result.failure)
          else if (request === first || continued?.end(result.success) === true) return result.success
          else yield* record(candidate, ProviderFailed.malformed(candidate.endpoint.name))
        }
      })

      const respond = (
        request: ProviderRequest,
        answer: AnnotatedSink,
        candidates: ReadonlyArray<Candidate>,
        continued: ContinuedAnswer.ContinuedAnswer | undefined
      ) => {
        if (!Array.isReadonlyArrayNonEmpty(candidates)) return Effect.fail(new ModelNotFound({ model: request.model }))
        const until = candidates.length === 1 ? late(request) : soon()
        // most requests end here and need no history
        return Fiberless.catchError(
          attempt.make(candidates[0], request, answer, { isFirst: true, isRetry: false, until }),
          (miss) => failOver(request, answer, candidates, miss, continued)
        )
      }

      return Providers.of({
        isIdempotent: (model) => routeOf(catalogue.current(), model)?.isIdempotent ?? false,
        perform: (request, sink) => {
          const route = routeOf(catalogue.current(), request.model)
          if (route === undefined) return Effect.fail(new ModelNotFound({ model: request.model }))
          return Fiberless.suspend(({ context }) => {
            const continued = route.continuation ? ContinuedAnswer.make(sink, request, now) : undefined
            const answer = new AnnotatedSink(continued ?? sink, request.queuedMs)
            const metered = continued === undefined ? request : { ...request, onCut: continued.onCut }
            const random = Context.get(context, Random.Random)
            const candidates = inOrder(route, random, route.sticky ? userOf(request) : undefined)
            return respond(metered, answer, candidates, continued)
          })
        }
      })
    })
  ).pipe(Layer.provide([CircuitBreakers.layerStore, RateLimiter.layerStoreMemory]))
}
