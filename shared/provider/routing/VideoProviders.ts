/** Finds the providers of a video model, each with its protocol's engine, and with limits and circuit breakers as for all requests. */
import { Cause, Clock, Context, Effect, Exit, Layer, Option, Random } from "effect"
import { ofEpochMs } from "../../bounds/MonotonicClock.ts"
import { Catalogue } from "../../catalogue/Catalogue.ts"
import { isIdempotent, videoProtocols } from "../../catalogue/Provider.ts"
import { type JobError, ModelDisabled, ModelNotFound } from "../../contract/JobError.ts"
import { videoGenerations } from "../../contract/operations/VideoGenerations.ts"
import * as AiSdkVideo from "../protocols/ai-sdk/AiSdkVideo.ts"
import * as DashScopeVideo from "../protocols/dashscope/DashScopeVideo.ts"
import * as Gate from "./Gate.ts"
import { GuardedFetch } from "../transport/GuardedFetch.ts"
import * as CircuitBreakers from "../health/CircuitBreakers.ts"
import type { Skipped } from "../health/Skipped.ts"
import type { Endpoint } from "../transport/Endpoint.ts"
import { notSupported } from "../call/Protocol.ts"
import { type Candidate, inOrder, routeOf } from "./Route.ts"
import { keyOf } from "../health/Target.ts"
import { Secrets } from "../transport/Secrets.ts"
import { Upstream } from "../transport/Upstream.ts"
import { oneCall } from "../call/Calls.ts"
import { LocalVideoEngine, type VideoEngine } from "../call/VideoEngine.ts"

/** How to submit a task and follow it. */
export interface VideoSubmission<Started, Done, Failure, Late> {
  /** Whose task it is. */
  readonly owner: string
  /** How long the submission may wait for the provider's limits, in epoch milliseconds. */
  readonly until: number
  readonly submit: Effect.Effect<Started, Failure>
  /** The provider's error in a failed submission; `undefined` if the failure says nothing about the provider. */
  readonly failureOf: (failure: Failure) => JobError | undefined
  /** Follows the task to its end. Until then it counts towards the provider's concurrency. */
  readonly follow: (started: Started) => Effect.Effect<Done, Late>
}

export interface VideoProvider {
  readonly endpoint: Endpoint
  readonly engine: VideoEngine
  /** Whether a task that may have been submitted may be submitted again; see the catalogue's `idempotent`. */
  readonly mayRepeat: boolean
  /** Submits a task once limits and circuit breaker allow it, and follows it. Returns the exit of `follow`. */
  readonly begin: <Started, Done, Failure, Late>(
    task: VideoSubmission<Started, Done, Failure, Late>
  ) => Effect.Effect<Exit.Exit<Done, Late>, Failure | Skipped>
}

/** The demand of a video, which uses none of a provider's tokens. */
const request: Omit<Gate.Asked, "owner"> = {
  body: new Uint8Array(0),
  operation: videoGenerations,
  calls: Effect.succeed(oneCall)
}
const noTokens = { inputTokens: 0, outputTokens: 0 }

export class VideoProviders extends Context.Service<VideoProviders, {
  /** The providers of a model in the order to try them, at least one. */
  readonly forModel: (model: string) => Effect.Effect<ReadonlyArray<VideoProvider>, JobError>
  /** The provider that a task was submitted to; `undefined` if the catalogue no longer has it. */
  readonly find: (provider: string, model: string) => VideoProvider | undefined
}>()("shared/provider/routing/VideoProviders") {
  static readonly layer = Layer.effect(
    VideoProviders,
    Effect.gen(function*() {
      const catalogue = yield* Catalogue
      const tools = { upstream: yield* Upstream, secrets: yield* Secrets, guard: yield* GuardedFetch }
      const gate = yield* Gate.make
      const health = yield* CircuitBreakers.make
      const clock = yield* Clock.Clock
      const engines: Record<typeof videoProtocols[number], VideoEngine> = {
        "ai-sdk": AiSdkVideo.make(tools),
        dashscope: DashScopeVideo.make(tools),
        local: yield* LocalVideoEngine
      }

      const recordFailure = (
        candidate: Candidate,
        admission: CircuitBreakers.Admission,
        permit: Gate.Permit,
        error: JobError | undefined
      ): Effect.Effect<void> => {
        if (error?._tag === "ProviderRateLimited") gate.refused(candidate, permit, error)
        return error === undefined
          ? health.recordAbandoned(candidate, admission)
          : health.recordFailure(candidate, admission, error)
      }

      const recordSuccess = (
        candidate: Candidate,
        admission: CircuitBreakers.Admission,
        permit: Gate.Permit
      ): Effect.Effect<void> => {
        gate.accepted(candidate, permit)
        return health.recordSuccess(candidate, admission) ?? Effect.void
      }

      const begin = (candidate: Candidate) =>
      <Started, Done, Failure, Late>(
        { failureOf, follow, owner, submit, until }: VideoSubmission<Started, Done, Failure, Late>
      ): Effect.Effect<Exit.Exit<Done, Late>, Failure | Skipped> =>
        Effect.suspend(() => {
          let ended: Exit.Exit<Done, Late> = Exit.interrupt()
          const call = (permit: Gate.Permit) =>
            Effect.flatMap(health.admit(candidate, owner), (admission) =>
              submit.pipe(
                Effect.onExit((exit) =>
                  Exit.isSuccess(exit)
                    ? recordSuccess(candidate, admission, permit)
                    : recordFailure(
                      candidate,
                      admission,
                      permit,
                      Option.getOrUndefined(Option.map(Cause.findErrorOption(exit.cause), failureOf))
                    )
                ),
                Effect.flatMap((started) => Effect.exit(follow(started))),
                Effect.map((exit) => {
                  ended = exit
                  return noTokens
                })
              ))
          const asked = { ...request, owner }
          return Effect.map(gate.run(candidate, asked, ofEpochMs(clock)(until), call), () => ended)
        })

      const named = (name: string, model: string): VideoProvider | undefined => {
        const provider = catalogue.current().providers.get(name)
        const protocol = videoProtocols.find((protocol) => protocol === provider?.protocol)
        const engine = protocol === undefined ? undefined : engines[protocol]
        if (provider === undefined || engine === undefined) return undefined
        const endpoint = { name, provider, model }
        return {
          endpoint,
          engine,
          mayRepeat: isIdempotent(provider),
          begin: begin({ key: keyOf(name, model), workload: "video", weight: 1, endpoint })
        }
      }
      return VideoProviders.of({
        forModel: Effect.fnUntraced(function*(name) {
          const route = routeOf(catalogue.current(), name)
          if (route === undefined) return yield* new ModelNotFound({ model: name })
          if (route.stages.length === 0) return yield* new ModelDisabled({ model: name })
          const candidates = inOrder(route, yield* Random.Random)
          const providers = candidates.flatMap(({ endpoint }) => named(endpoint.name, endpoint.model) ?? [])
          return providers.length > 0 ? providers : yield* notSupported({ model: name, operation: videoGenerations })
        }),
        find: named
      })
    })
  )
}
