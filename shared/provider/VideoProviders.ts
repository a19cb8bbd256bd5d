/** From a video model's name to the providers that can make the video, each with the engine that speaks its protocol. */
import { Context, Effect, Layer } from "effect"
import { Catalogue, type Provider } from "../catalogue/Catalogue.ts"
import { type JobError, ModelNotFound } from "../contract/JobError.ts"
import { videoGenerations } from "../contract/VideoGenerations.ts"
import * as AiSdkVideo from "./ai-sdk/AiSdkVideo.ts"
import * as DashScopeVideo from "./dashscope/DashScopeVideo.ts"
import { GuardedFetch } from "./GuardedFetch.ts"
import { type Endpoint, notSupported } from "./Protocol.ts"
import { inOrder, mayRepeat, routeOf } from "./Route.ts"
import { Upstream } from "./Upstream.ts"
import { LocalVideoEngine, type VideoEngine } from "./VideoEngine.ts"

export interface VideoProvider {
  readonly endpoint: Endpoint
  readonly engine: VideoEngine
  /** Whether a task may be submitted again where it is not known if it was; see the catalogue's `redispatch`. */
  readonly mayRepeat: boolean
}

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
      const upstream = yield* Upstream
      const guard = yield* GuardedFetch
      const engines: Partial<Record<Provider["protocol"], VideoEngine>> = {
        "ai-sdk": AiSdkVideo.make(guard),
        dashscope: DashScopeVideo.make({ upstream, guard }),
        local: yield* LocalVideoEngine
      }
      const named = (name: string, model: string): VideoProvider | undefined => {
        const provider = catalogue.current().providers.get(name)
        const engine = provider === undefined ? undefined : engines[provider.protocol]
        return provider === undefined || engine === undefined
          ? undefined
          : { endpoint: { name, provider, model }, engine, mayRepeat: mayRepeat(provider) }
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
  )
}
