/** Makes videos with AI SDK packages. The task stores the SDK's operation, so that any worker can resume it. */
import type { Experimental_VideoModelV4VideoData } from "@ai-sdk/provider"
import { Effect, Option, Predicate, Schema } from "effect"
import { InternalError, InvalidRequest, ProviderRejected } from "../../../contract/JobError.ts"
import { extentOf } from "../../../contract/operations/LocalVideo.ts"
import { videoGenerations } from "../../../contract/operations/VideoGenerations.ts"
import type { GuardedFetch } from "../../transport/GuardedFetch.ts"
import { redact } from "../../exchange/ProviderError.ts"
import * as Polling from "../../exchange/Polling.ts"
import * as VideoFile from "../../call/VideoFile.ts"
import {
  createWithinMs,
  formatParameter,
  lostAtProviders,
  type VideoCall,
  type VideoEngine,
  type VideoRequest
} from "../../call/VideoEngine.ts"
import { type Attempt, attempt } from "./AiSdkCall.ts"
import { toFile } from "./AiSdkImages.ts"
import { lostFeatures, modelOf, providerOptions } from "./AiSdkModel.ts"
import { opener, type PackageTools } from "./AiSdkPackage.ts"

// Request

const settings: Readonly<Record<string, string>> = { resolution: "width, height" }

/** The request's `metadata`, under the SDK's names. */
const ownOptions = (request: VideoRequest) => {
  const { negative_prompt: negativePrompt, quality_level: _level, style: _style, ...own } = request.metadata ?? {}
  return { ...own, ...formatParameter(request), ...(typeof negativePrompt === "string" ? { negativePrompt } : {}) }
}

const toOptions = Effect.fnUntraced(function*({ request }: VideoCall, guard: GuardedFetch["Service"]) {
  const { duration, fps, height, image, metadata, prompt, seed, width } = request
  const style = metadata?.style
  const size = extentOf(request)
  // the SDK has JavaScript's numbers only
  if (Predicate.isNotNullish(seed) && !Number.isSafeInteger(seed)) {
    return yield* InvalidRequest.at("seed", "must be less than 2^53 for this model")
  }
  return {
    prompt: typeof style === "string" ? `${prompt}, ${style}` : prompt,
    n: 1,
    aspectRatio: undefined,
    resolution: typeof width === "number" || typeof height === "number"
      ? `${size.width}x${size.height}` as const
      : undefined,
    duration: duration ?? undefined,
    fps: fps ?? undefined,
    seed: typeof seed === "number" ? seed : undefined,
    image: typeof image === "string" ? yield* toFile({ content: image, param: "image" }, guard) : undefined,
    frameImages: undefined,
    inputReferences: undefined,
    generateAudio: undefined
  }
})

// Answer

const AiSdkTask = Schema.Struct({
  operation: Schema.Json,
  /** The fields that the package reported as unsupported at the start. */
  warnings: Schema.Array(Schema.String)
})
const decodeTask = Schema.decodeUnknownEffect(AiSdkTask)

export const make = ({ guard, secrets }: PackageTools): VideoEngine => {
  const open = opener({ guard, secrets })

  const prepare = Effect.fnUntraced(function*({ endpoint, request }: VideoCall) {
    const opened = yield* open(endpoint)
    const served = { model: request.model, operation: videoGenerations }
    return { opened, model: yield* modelOf("video", opened, endpoint, served) }
  })

  return {
    start: Effect.fnUntraced(function*(call) {
      const { endpoint, id, request } = call
      const { model, opened } = yield* prepare(call)
      const options = yield* toOptions(call, guard)
      const { idempotencyHeader } = opened.options
      const at: Attempt = { endpoint, secrets: opened.secrets, withinMs: createWithinMs }
      const { operation, warnings } = yield* attempt(at, ({ abortSignal, headers }) =>
        model.doStart({
          ...options,
          abortSignal,
          headers: idempotencyHeader === undefined ? headers : { ...headers, [idempotencyHeader]: id },
          providerOptions: providerOptions(opened, model, ownOptions(request))
        }))
      return {
        operation,
        warnings: [
          ...lostAtProviders(request),
          ...lostFeatures(warnings).map((feature) => settings[feature] ?? feature)
        ]
      }
    }),
    follow: Effect.fnUntraced(function*(call, task) {
      const { endpoint, endpoint: { name: provider } } = call
      const { operation, warnings } = yield* Effect.mapError(decodeTask(task), () => new InternalError())
      const { model, opened } = yield* prepare(call)
      const { pollIntervalMs = 5_000 } = opened.options

      const fetchVideo = (video: Experimental_VideoModelV4VideoData | undefined) => {
        switch (video?.type) {
          case "base64":
            return VideoFile.read(call, Buffer.from(video.data, "base64"), warnings)
          case "binary":
            return VideoFile.read(call, video.data, warnings)
          default:
            return VideoFile.fetch(guard, call, video?.type === "url" ? video.url : undefined, warnings)
        }
      }

      const poll = attempt(
        { endpoint, secrets: opened.secrets },
        (options) => model.doStatus({ ...options, operation })
      ).pipe(Effect.map((status) => {
        switch (status.status) {
          case "pending":
            return Option.none()
          case "completed":
            return Option.some(fetchVideo(status.videos[0]))
          case "error":
            // treated as the request's fault, because the SDK does not say whose it was
            return Option.some(Effect.fail(
              new ProviderRejected({ provider, status: 400, message: redact(status.error, opened.secrets) })
            ))
        }
      }))
      return yield* Polling.untilEnded(poll, pollIntervalMs)
    }),
    // the SDK has no such operation
    cancel: ({ endpoint, id }) =>
      Effect.logInfo("an AI SDK package cannot cancel a task at its provider", { provider: endpoint.name, id })
  }
}
