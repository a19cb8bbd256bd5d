/** Videos through an AI SDK package: started once, continued by any worker, fetched under the guard. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import type { VideoGenerationRequest } from "../../../../shared/contract/operations/VideoGenerations.ts"
import * as AiSdkVideo from "../../../../shared/provider/protocols/ai-sdk/AiSdkVideo.ts"
import { GuardedFetch } from "../../../../shared/provider/transport/GuardedFetch.ts"
import { Secrets } from "../../../../shared/provider/transport/Secrets.ts"
import type { VideoCall, VideoEngine } from "../../../../shared/provider/call/VideoEngine.ts"
import { stripes, toDataUrl } from "../../../fixture/calls/ImagesEngine.ts"
import { keyReference, secretsWith } from "../../../fixture/ProviderKey.ts"
import { serving } from "../../../fixture/general/Serving.ts"
import { clip, done, type Veo, veo } from "../../../fixture/provider/Veo.ts"

const key = "google-secret"

const tools = Effect.all({ guard: GuardedFetch, secrets: Secrets })
const services = Layer.mergeAll(GuardedFetch.layer, secretsWith(key))

interface Bench {
  readonly engine: VideoEngine
  readonly provider: Veo
  readonly callOf: (wish: Partial<VideoGenerationRequest>, options?: object) => VideoCall
}

const bench = <A, E>(test: (bench: Bench) => Effect.Effect<A, E>) =>
  Effect.gen(function*() {
    const provider = yield* veo
    const callOf: Bench["callOf"] = (wish, options = {}) => ({
      id: "task_1",
      request: { model: "video", prompt: "a boat", ...wish },
      endpoint: {
        name: "sdk",
        model: "veo",
        provider: {
          protocol: "ai-sdk",
          baseUrl: provider.baseUrl,
          apiKey: keyReference,
          options: { package: "@ai-sdk/google", pollIntervalMs: 1, ...options }
        }
      }
    })
    return yield* test({ provider, callOf, engine: AiSdkVideo.make(yield* tools) })
  }).pipe(Effect.scoped, Effect.provide(services))

/** Follows the task in another worker, which knows only the stored record. */
const followElsewhere = (call: VideoCall, task: unknown) =>
  Effect.flatMap(tools, (tools) => {
    const stored: unknown = JSON.parse(JSON.stringify(task))
    return AiSdkVideo.make(tools).follow(call, stored, () => {})
  }).pipe(Effect.provide(services))

describe("a video", () => {
  it.live("is started once, and continued by another worker", () =>
    bench(({ callOf, engine, provider }) =>
      Effect.gen(function*() {
        const picture = yield* stripes(8, 8, [[200, 0, 0]])
        const wish = {
          image: toDataUrl(picture),
          width: 1280,
          height: 720,
          duration: 4,
          seed: 7,
          metadata: { negative_prompt: "fog", style: "ink", quality_level: "high", personGeneration: "dont_allow" }
        }
        const call = callOf(wish)
        const task = yield* engine.start(call)
        assert.deepStrictEqual(provider.started.map(({ body }) => body), [{
          instances: [{
            prompt: "a boat, ink",
            image: { bytesBase64Encoded: picture.toString("base64"), mimeType: "image/png" }
          }],
          parameters: {
            sampleCount: 1,
            resolution: "720p",
            durationSeconds: 4,
            seed: 7,
            negativePrompt: "fog",
            personGeneration: "dont_allow"
          }
        }])
        provider.outcome = () => done(provider)
        const video = yield* followElsewhere(call, task)
        assert.isTrue(clip.equals(video.bytes))
        assert.deepStrictEqual(video.metadata, {
          duration: 2,
          fps: 8,
          width: 64,
          height: 64,
          seed: 7,
          warnings: ["metadata.quality_level"]
        })
        assert.lengthOf(provider.started, 1)
        assert.deepStrictEqual(provider.polled, ["/operations/1"])
        assert.notInclude(JSON.stringify(task), key)
      })
    ))

  it.live("is requested with values that only this provider may accept", () =>
    bench(({ callOf, engine, provider }) =>
      Effect.gen(function*() {
        const wish = { width: 3840, height: 2160, duration: 30, seed: -1, response_format: "webm" }
        const call = callOf(wish)
        const task = yield* engine.start(call)
        assert.deepStrictEqual(provider.started.map(({ body }) => (body as { parameters: unknown }).parameters), [
          { sampleCount: 1, resolution: "4k", durationSeconds: 30, seed: -1, response_format: "webm" }
        ])
        provider.outcome = () => done(provider)
        const { metadata } = yield* followElsewhere(call, task)
        assert.isNull(metadata.seed)
      })
    ))

  it.live("is polled until it is done", () =>
    bench(({ callOf, engine, provider }) =>
      Effect.gen(function*() {
        const call = callOf({})
        const task = yield* engine.start(call)
        provider.outcome = (looks) => looks < 4 ? undefined : done(provider)
        yield* followElsewhere(call, task)
        assert.lengthOf(provider.polled, 4)
      })
    ))

  it.live("is started with an idempotency key if the provider accepts one", () =>
    bench(({ callOf, engine, provider }) =>
      Effect.gen(function*() {
        yield* engine.start(callOf({}))
        yield* engine.start(callOf({}, { idempotencyHeader: "Idempotency-Key" }))
        assert.deepStrictEqual(provider.started.map(({ headers }) => headers["idempotency-key"]), [undefined, "task_1"])
      })
    ))

  it.live("that the provider rejects fails with the provider's message", () =>
    bench(({ callOf, provider }) =>
      Effect.gen(function*() {
        provider.outcome = () => ({ error: { code: 3, message: `not with ${key}`, status: "INVALID_ARGUMENT" } })
        const failure = yield* Effect.flip(
          followElsewhere(callOf({}), { operation: { operationName: "operations/1" }, warnings: [] })
        )
        assert.strictEqual(failure._tag, "ProviderRejected")
        assert.include(failure.message, "not with [redacted]")
      })
    ))

  it.live("is not fetched from another origin in the provider's network", () =>
    bench(({ callOf, provider }) =>
      Effect.gen(function*() {
        const other = yield* serving((_request, response) => response.end(clip))
        provider.videoUrl = `${other.url}/video.mp4`
        provider.outcome = () => done(provider)
        const task = { operation: { operationName: "operations/1" }, warnings: [] }
        assert.deepInclude(yield* Effect.flip(followElsewhere(callOf({}), task)), {
          _tag: "ProviderFailed",
          reason: "result"
        })
        assert.strictEqual(other.connections(), 0)
      }).pipe(Effect.scoped)
    ))

  it.live("requires a package whose tasks can be continued", () =>
    bench(({ callOf, engine }) =>
      Effect.gen(function*() {
        const failure = yield* Effect.flip(Effect.asVoid(engine.start(callOf({}, { package: "@ai-sdk/openai" }))))
        assert.deepInclude(failure, {
          _tag: "InvalidRequest",
          message: "model: 'video' does not serve video.generations"
        })
      })
    ))
})
