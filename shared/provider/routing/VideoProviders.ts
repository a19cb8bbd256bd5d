/**
 * From a video model's name to the providers that can make the video, each with the engine that speaks its protocol, and
 * with the limits and the rests that it shares with all other requests.
 */
import { Cause, Context, Effect, Exit, Layer, Option, Predicate } from "effect"
import { RateLimiter } from "effect/persistence"
import { Catalogue, type Provider } from "../../catalogue/Catalogue.ts"
import { type JobError, ModelNotFound } from "../../contract/JobError.ts"
import { videoGenerations } from "../../contract/operations/VideoGenerations.ts"
import * as AiSdkVideo from "../protocols/ai-sdk/AiSdkVideo.ts"
import * as DashScopeVideo from "../protocols/dashscope/DashScopeVideo.ts"
import * as Gate from "./Gate.ts"
import { GuardedFetch } from "../transport/GuardedFetch.ts"
import * as Health from "./Health.ts"
import type { Passed } from "./Passed.ts"
import type { Endpoint } from "../transport/Endpoint.ts"
import { notSupported } from "../call/Protocol.ts"
import { type Candidate, inOrder, keyOf, mayRepeat, routeOf } from "./Route.ts"
import { Secrets } from "../transport/Secrets.ts"
import { Upstream } from "../transport/Upstream.ts"
import { LocalVideoEngine, type VideoEngine } from "../call/VideoEngine.ts"

/** A task on its way to a provider. */
export interface Beginning<Started, Done, Failure, Late> {
  /** Epoch milliseconds: until then it waits for the provider's limits. */
  readonly until: number
  /** Submits it. */
  readonly submit: Effect.Effect<Started, Failure>
  /** What a failure of that says of the provider; `undefined` where nothing. */
  readonly failureOf: (failure: Failure) => JobError | undefined
  /** Goes on with it to its end: so long it counts as one of the calls that the provider takes at once. */
  readonly goOn: (started: Started) => Effect.Effect<Done, Late>
}

export interface VideoProvider {
  readonly endpoint: Endpoint
  readonly engine: VideoEngine
  /** Whether a task may be submitted again where it is not known if it was; see the catalogue's `redispatch`. */
  readonly mayRepeat: boolean
  /** Submits a task when the provider's limits and its health allow it, and goes on with it; returns how that ended. */
  readonly begin: <Started, Done, Failure, Late>(
    task: Beginning<Started, Done, Failure, Late>
  ) => Effect.Effect<Exit.Exit<Done, Late>, Failure | Passed>
}

/** A video takes nothing of a provider's tokens: what is asked for it is no text, and neither is what comes of it. */
const request = { body: new Uint8Array(0), operation: videoGenerations }
const noTokens = { inputTokens: 0, outputTokens: 0 }

export class VideoProviders extends Context.Service<VideoProviders, {
  /** At least one, in the order in which they are to be tried. */
  readonly forModel: (model: string) => Effect.Effect<ReadonlyArray<VideoProvider>, JobError>
  /** The one that a task was given to; `undefined` where the catalogue has it no more. */
  readonly named: (provider: string, model: string) => VideoProvider | undefined
}>()("shared/provider/VideoProviders") {
  static readonly layer = Layer.effect(
    VideoProviders,
    Effect.gen(function*() {
      const catalogue = yield* Catalogue
      const tools = { upstream: yield* Upstream, secrets: yield* Secrets, guard: yield* GuardedFetch }
      const gate = yield* Gate.make
      const health = yield* Health.make
      const engines: Partial<Record<Provider["protocol"], VideoEngine>> = {
        "ai-sdk": AiSdkVideo.make(tools),
        dashscope: DashScopeVideo.make(tools),
        local: yield* LocalVideoEngine
      }

      const heard = (
        candidate: Candidate,
        admission: Health.Admission,
        permit: Gate.Permit,
        error: JobError | undefined
      ): Effect.Effect<void> => {
        if (error === undefined) return health.abandoned(candidate, admission)
        const told = health.failed(candidate, admission, error)
        return Predicate.isTagged(error, "ProviderRateLimited")
          ? Effect.andThen(told, gate.slow(candidate, permit, error.retryAfterMs))
          : told
      }

      const begin = (candidate: Candidate) =>
      <Started, Done, Failure, Late>(
        { failureOf, goOn, submit, until }: Beginning<Started, Done, Failure, Late>
      ): Effect.Effect<Exit.Exit<Done, Late>, Failure | Passed> =>
        Effect.suspend(() => {
          let ended: Exit.Exit<Done, Late> = Exit.interrupt()
          const call = (permit: Gate.Permit) =>
            Effect.flatMap(health.admit(candidate), (admission) =>
              submit.pipe(
                Effect.onExit((exit) =>
                  Exit.isSuccess(exit)
                    ? health.succeeded(candidate, admission) ?? Effect.void
                    : heard(
                      candidate,
                      admission,
                      permit,
                      Option.getOrUndefined(Option.map(Cause.findErrorOption(exit.cause), failureOf))
                    )
                ),
                Effect.flatMap((started) => Effect.exit(goOn(started))),
                Effect.map((exit) => {
                  ended = exit
                  return noTokens
                })
              ))
          return Effect.map(gate.through(candidate, request, until, call), () => ended)
        })

      const named = (name: string, model: string): VideoProvider | undefined => {
        const provider = catalogue.current().providers.get(name)
        const engine = provider === undefined ? undefined : engines[provider.protocol]
        if (provider === undefined || engine === undefined) return undefined
        const endpoint = { name, provider, model }
        return {
          endpoint,
          engine,
          mayRepeat: mayRepeat(provider),
          begin: begin({ key: keyOf(name, model), workload: "video", weight: 1, endpoint })
        }
      }
      return VideoProviders.of({
        forModel: Effect.fnUntraced(function*(name) {
          const route = routeOf(catalogue.current(), name)
          if (route === undefined) return yield* new ModelNotFound({ model: name })
          const providers = (yield* inOrder(route)).flatMap(({ endpoint }) =>
            named(endpoint.name, endpoint.model) ?? []
          )
          return providers.length > 0 ? providers : yield* notSupported({ model: name, operation: videoGenerations })
        }),
        named
      })
    })
  ).pipe(Layer.provide([Health.layerStore, RateLimiter.layerStoreMemory]))
}
