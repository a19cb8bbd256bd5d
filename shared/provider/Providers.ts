/**
 * From a model's name to an answer: chooses among the model's targets and tries them in turn until one has begun to
 * answer.
 */
import { Context, Effect, Layer, Random } from "effect"
import { Catalogue, type Model, type Provider, type Target } from "../catalogue/Catalogue.ts"
import { isTransient, type JobError, ModelNotFound } from "../contract/JobError.ts"
import type { Operation } from "../contract/Operation.ts"
import type { Usage } from "../contract/Usage.ts"
import * as Attributes from "../telemetry/Attributes.ts"
import * as Span from "../telemetry/Span.ts"
import type { Call } from "./Protocol.ts"
import { protocols } from "./protocols.ts"
import type { Sink } from "./Sink.ts"

export interface ProviderRequest {
  readonly operation: Operation
  readonly model: string
  readonly tenant: string
  readonly contentType: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: Uint8Array
}

/** How many targets one request may be sent to before it fails. */
const maxTargets = 3

export class Providers extends Context.Service<Providers, {
  /** Whether a request for this model may be given to a second worker; see the catalogue's `redispatch`. */
  readonly redispatch: (model: string) => "always" | "neverSent"
  /** Answers into the sink. Fails with the last target's error. */
  readonly perform: (request: ProviderRequest, sink: Sink) => Effect.Effect<Usage | undefined, JobError>
}>()("shared/provider/Providers") {
  static readonly layer = Layer.effect(
    Providers,
    Effect.gen(function*() {
      const catalogue = yield* Catalogue
      const performs = yield* protocols
      const performOnce = (call: Call, sink: Sink) =>
        performs[call.endpoint.provider.protocol](call, sink).pipe(
          Span.around(`${call.operation.name} ${call.model}`, {
            kind: "client",
            attributes: Attributes.attempt(call)
          })
        )
      return Providers.of({
        redispatch: (model) => {
          const { models, providers } = catalogue.current()
          const targets = models.get(model)?.targets ?? []
          return targets.length > 0 && targets.every((target) => mayRepeat(providers.get(target.provider)))
            ? "always"
            : "neverSent"
        },
        perform: Effect.fnUntraced(function*(request, sink) {
          const { models, providers } = catalogue.current()
          const model = models.get(request.model)
          if (model === undefined) return yield* new ModelNotFound({ model: request.model })
          const targets = (yield* inOrder(model)).slice(0, maxTargets)
          let failure: JobError | undefined
          for (const target of targets) {
            const provider = providers.get(target.provider)
            if (provider === undefined) continue
            const endpoint = { name: target.provider, provider, model: target.model ?? request.model }
            const result = yield* Effect.result(performOnce({ ...request, endpoint }, sink))
            if (result._tag === "Success") return result.success
            failure = result.failure
            if (sink.started || !isTransient(failure)) break
          }
          return yield* failure ?? new ModelNotFound({ model: request.model })
        })
      })
    })
  )
}

/** Whether a call to it may be made a second time. */
export const mayRepeat = (provider: Provider | undefined): boolean =>
  (provider?.redispatch ?? (provider?.protocol === "local" ? "always" : "neverSent")) === "always"

/** The targets by priority, and within one priority at random by weight. */
export const inOrder = Effect.fnUntraced(function*(model: Model): Effect.fn.Return<ReadonlyArray<Target>> {
  if (model.targets.length === 1) return model.targets
  const drawn: Array<{ readonly target: Target; readonly at: number }> = []
  for (const target of model.targets) {
    // an exponential draw per target: sorting by it picks each in proportion to its weight
    drawn.push({ target, at: -Math.log(1 - (yield* Random.next)) / (target.weight ?? 1) })
  }
  return drawn
    .toSorted((a, b) => (a.target.priority ?? 0) - (b.target.priority ?? 0) || a.at - b.at)
    .map(({ target }) => target)
})
