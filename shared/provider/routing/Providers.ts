/** Answers a request for a model: calls candidates until one starts an answer, as `AttemptHistory.ts` decides. */
import { Array, Clock, Context, Effect, Layer, Option, Random, Result } from "effect"
import * as Fiberless from "../../bounds/Fiberless.ts"
import { monotonicMs, ofEpochMs } from "../../bounds/MonotonicClock.ts"
import { Catalogue } from "../../catalogue/Catalogue.ts"
import { type JobError, ModelDisabled, ModelNotFound, ProviderFailed } from "../../contract/JobError.ts"
import type { Usage } from "../../contract/Usage.ts"
import { AnnotatedSink } from "./AnnotatedSink.ts"
import { Affinity } from "./Affinity.ts"
import * as Attempt from "./Attempt.ts"
import { AttemptHistory } from "./AttemptHistory.ts"
import * as ContinuedAnswer from "../exchange/continuation/ContinuedAnswer.ts"
import { momentMs } from "../health/Pace.ts"
import type { Skipped } from "../health/Skipped.ts"
import { reportWait } from "./Gate.ts"
import { type Candidate, inOrder, type Route, routeOf } from "./Route.ts"
import * as SignatureMarks from "../dialects/conversation/SignatureMarks.ts"
import * as Endpoint from "../transport/Endpoint.ts"
import { Secrets } from "../transport/Secrets.ts"
import type { Sink } from "../transport/Sink.ts"
import { sessionOf } from "../call/SessionOf.ts"

export interface ProviderRequest extends Attempt.Request {
  /** How long the request may wait for a provider's limits or for a retry, in epoch milliseconds. */
  readonly deadline: number
  /** How long the request has waited for a worker, in milliseconds. */
  readonly queuedMs: number
}

/** A request on its way to the candidates, in their order. */
interface Routed {
  readonly request: ProviderRequest
  /** The request's deadline by the monotonic clock, in milliseconds, so that it no longer depends on the time of day. */
  readonly deadline: number
  readonly answer: AnnotatedSink
  readonly candidates: ReadonlyArray<Candidate>
  readonly continued: ContinuedAnswer.ContinuedAnswer | undefined
  /** Makes one call. */
  readonly call: Attempt.Attempt["make"]
}

export class Providers extends Context.Service<Providers, {
  /** Whether a request for this model may be sent twice; see the catalogue's `idempotent`. */
  readonly isIdempotent: (model: string) => boolean
  /** Whose calls to which targets are delayed or rejected at present. */
  readonly delays: Attempt.Attempt["delays"]
  /** Writes the answer to the sink. Fails with the last provider's error. */
  readonly perform: (request: ProviderRequest, sink: Sink) => Effect.Effect<Usage | undefined, JobError>
}>()("shared/provider/routing/Providers") {
  static readonly layer = Layer.effect(
    Providers,
    Effect.gen(function*() {
      const catalogue = yield* Catalogue
      const attempt = yield* Attempt.make
      const affinity = new Affinity()
      const secrets = yield* Secrets
      const clock = yield* Clock.Clock

      const now = monotonicMs(clock)
      const soon = () => now() + momentMs
      /** The deadline, but at least `momentMs` from now: even a late request may check for free capacity. */
      const late = (deadline: number) => Math.max(deadline, soon())

      /** Takes one step after another, after the first candidate has failed or was skipped. */
      const failOver = Effect.fnUntraced(function*(
        { answer, call, candidates, continued, deadline, request: first }: Routed,
        firstCandidate: Candidate,
        firstMiss: JobError | Skipped
      ) {
        let request = first
        const history = new AttemptHistory(candidates, deadline)
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

        yield* record(firstCandidate, firstMiss)
        for (;;) {
          const step = history.next(now())
          if (step.kind === "fail") return yield* step.error
          const { at, candidate, isRetry, waits } = step
          // taken before the pause: without a retry there is nothing to wait for
          const refusal = isRetry ? attempt.takeRetry(candidate, request.tenant, at) : undefined
          if (refusal !== undefined) {
            yield* record(candidate, refusal)
            continue
          }
          // rounded up, because timers count whole milliseconds
          if (at > now()) {
            yield* reportWait(request.onWait, candidate.endpoint.name, Effect.sleep(Math.ceil(at - now())))
          }
          const isFirst = candidate === firstCandidate
          const until = waits ? late(deadline) : soon()
          const result = yield* Effect.result(call(candidate, request, answer, { isFirst, isRetry, until }))
          if (Result.isFailure(result)) yield* record(candidate, result.failure)
          else if (request === first || continued?.end(result.success) === true) return result.success
          else yield* record(candidate, ProviderFailed.malformed(candidate.endpoint.name))
        }
      })

      const respond = (routed: Routed) => {
        const { answer, call, candidates, deadline, request } = routed
        if (!Array.isReadonlyArrayNonEmpty(candidates)) return Effect.fail(new ModelDisabled({ model: request.model }))
        const [candidate] = candidates
        const until = candidates.length === 1 ? late(deadline) : soon()
        // most requests end here and need no history
        return Fiberless.catchError(
          call(candidate, request, answer, { isFirst: true, isRetry: false, until }),
          (miss) => failOver(routed, candidate, miss)
        )
      }

      const callWithAffinity: Routed["call"] = (candidate, ...about) =>
        affinity.during(candidate, attempt.make(candidate, ...about))

      const isHealthyFor = ({ tenant }: ProviderRequest) => (candidate: Candidate) =>
        attempt.isHealthy(candidate, tenant)

      /** The order of the candidates, with affinity for the request's session if the model's route is sticky. */
      const routeTo = (route: Route, request: ProviderRequest, random: typeof Random.Random.Service) => {
        if (route.sticky === "none") return { request, candidates: inOrder(route, random), call: attempt.make }
        const session = sessionOf(request, route.sticky)
        return {
          request: { ...request, session },
          candidates: session === undefined
            ? inOrder(route, random)
            : route.stages.flatMap((stage) => affinity.inOrder(stage, session, isHealthyFor(request))),
          call: callWithAffinity
        }
      }

      /** Puts the candidate first whose account made the latest reasoning, while it is healthy: no other can read that reasoning. */
      const readerFirst = ({ candidates, request }: Routed, account: string) =>
        Effect.findFirst(candidates, ({ endpoint }) =>
          Endpoint.accountFor(endpoint, secrets).pipe(
            Effect.map((own) => own === account),
            Effect.orElseSucceed(() => false)
          )).pipe(
            Effect.map(Option.filter(isHealthyFor(request))),
            Effect.map(Option.match({
              onNone: () => candidates,
              onSome: (reader) => [reader, ...candidates.filter((candidate) => candidate !== reader)]
            }))
          )

      return Providers.of({
        delays: attempt.delays,
        isIdempotent: (model) => routeOf(catalogue.current(), model)?.isIdempotent ?? false,
        perform: (request, sink) => {
          const route = routeOf(catalogue.current(), request.model)
          if (route === undefined) return Effect.fail(new ModelNotFound({ model: request.model }))
          return Fiberless.suspend(({ context }) => {
            const continued = route.continuation ? ContinuedAnswer.make(sink, request, now) : undefined
            const answer = new AnnotatedSink(continued ?? sink, request.queuedMs)
            const metered = continued === undefined ? request : { ...request, onCut: continued.onCut }
            const deadline = ofEpochMs(clock)(request.deadline)
            const routed = {
              ...routeTo(route, metered, Context.get(context, Random.Random)),
              deadline,
              answer,
              continued
            }
            const isAlone = routed.candidates.length < 2
            const account = isAlone ? undefined : SignatureMarks.lastAccountIn(request.body)
            return account === undefined ? respond(routed) : Effect.flatMap(
              readerFirst(routed, account),
              (candidates) => respond({ ...routed, candidates })
            )
          })
        }
      })
    })
  )
}
