/** Makes pictures with AI SDK packages. */
import { Effect } from "effect"
import type { ImageModelV4File, ImageModelV4Usage } from "@ai-sdk/provider"
import { InvalidRequest, type JobError } from "../../../contract/JobError.ts"
import type { Usage } from "../../../contract/Usage.ts"
import * as UsageSum from "../../../contract/UsageSum.ts"
import type { GuardedFetch } from "../../transport/GuardedFetch.ts"
import type { ImageModel, Picture } from "../../dialects/images/ImageModel.ts"
import { type ImageSetting, pathsOf } from "../../dialects/images/ImageRequest.ts"
import { fileOf, type ImageSource } from "../../dialects/images/ImageSource.ts"
import * as PaidParts from "../../call/PaidParts.ts"
import { mediaTypeOf } from "../../call/PictureKind.ts"
import { callsFor } from "../../call/Calls.ts"
import * as Images from "../../dialects/images/Images.ts"
import * as Json from "../../json/Json.ts"
import { type Call, notSupported } from "../../call/Protocol.ts"
import { ask, type Attempt, attempt } from "./AiSdkCall.ts"
import { lostFeatures, modelOf, providerOptions } from "./AiSdkModel.ts"
import type { Opener } from "./AiSdkPackage.ts"

export const toFile = (
  source: ImageSource,
  guard: GuardedFetch["Service"]
): Effect.Effect<Extract<ImageModelV4File, { readonly type: "file" }>, InvalidRequest> =>
  Effect.map(fileOf(source, guard), ({ bytes, kind }) => ({ type: "file", data: bytes, mediaType: mediaTypeOf(kind) }))

/** Settings that the SDK lacks. A client can send them under the package's own names. */
const unknownSettings = ["negativePrompt", "extend", "watermark", "format", "quality", "user"] as const

/** Whether the SDK and the API have the same name for the feature. */
const isSetting = (feature: string): feature is ImageSetting => ["n", "size", "seed"].includes(feature)

/** The number of pictures of each call: a model may make fewer per call than the client wants. */
const sharesOf = (n: number, atOnce: number): ReadonlyArray<number> =>
  Array.from({ length: Math.ceil(n / atOnce) }, (_, call) => Math.min(atOnce, n - call * atOnce))

const callsAtOnce = 4

/** The revised prompt in a package's metadata. */
const revisedPromptOf = (metadata: unknown, name: string, index: number): string | undefined => {
  const images = Json.list(Json.fields(Json.fields(metadata)[name])["images"])
  return Json.string(Json.fields(images[index])["revisedPrompt"])
}

const bytesIn = (data: string | Uint8Array): Uint8Array => typeof data === "string" ? Buffer.from(data, "base64") : data

const modelFor = Effect.fnUntraced(function*(call: Call, open: Opener) {
  const { endpoint } = call
  const opened = yield* open(endpoint)
  const model = yield* modelOf("image", opened, endpoint, call)
  const at: Attempt = { endpoint, secrets: opened.secrets }
  const { maxImagesPerCall: most } = model
  /** The most pictures per call. */
  const limit = ask(
    at,
    async () => (typeof most === "function" ? await most({ modelId: endpoint.model }) : most) ?? Infinity
  )
  return { at, limit, model, opened }
})

/** The calls of a request. */
export const callsOf = Effect.fnUntraced(function*(call: Call, open: Opener) {
  const pictures = yield* Images.pictureCount(call)
  const { limit } = yield* modelFor(call, open)
  return callsFor(pictures, yield* limit, callsAtOnce)
})

export const make = (open: Opener, guard: GuardedFetch["Service"]): ImageModel =>
  Effect.fnUntraced(function*(call, request) {
    const { at, limit, model, opened } = yield* modelFor(call, open)
    const changes = request.images.length > 0
    if (changes && !(yield* takesPictures(model, at))) return yield* notSupported(call)
    const files = yield* Effect.forEach(request.images, (image) => toFile(image, guard))
    const mask = request.mask === undefined ? undefined : yield* toFile(request.mask, guard)
    const { seed } = request
    // the SDK has JavaScript's numbers only
    if (seed !== undefined && typeof seed !== "number") {
      return yield* InvalidRequest.at(request.pathOf("seed"), "must be less than 2^53 for this model")
    }
    const shares = sharesOf(request.n, Math.min(request.n, yield* limit))
    const answers = yield* PaidParts.metered(
      call,
      (paid) =>
        Effect.forEach(shares, (n, index) =>
          attempt(at, (options) =>
            model.doGenerate({
              ...options,
              prompt: request.prompt,
              n,
              size: request.size === undefined ? undefined : `${request.size.width}x${request.size.height}`,
              aspectRatio: undefined,
              // differs for each call, so that the calls of a request do not make the same pictures
              seed: seed === undefined ? undefined : seed + index,
              files: changes ? files : undefined,
              mask,
              providerOptions: providerOptions(opened, model, request.extra)
            })).pipe(
              Effect.map((answer) => {
                paid({ ...tokensOf(answer.usage), images: answer.images.length })
                return answer
              })
            ), { concurrency: callsAtOnce })
    )

    const name = model.provider.split(".")[0] ?? ""
    const pictures = answers.flatMap(({ images, providerMetadata }) =>
      images.map((data, index): Picture => ({
        content: bytesIn(data),
        revisedPrompt: revisedPromptOf(providerMetadata, name, index)
      }))
    )
    const unsupported = answers.flatMap(({ warnings }) => lostFeatures(warnings)).map((feature) =>
      isSetting(feature) ? request.pathOf(feature) : feature
    )
    return {
      pictures,
      usage: answers.reduce((sum, { usage }) => UsageSum.sum(sum, tokensOf(usage)), UsageSum.none),
      warnings: [...new Set([...pathsOf(request, unknownSettings), ...unsupported])]
    }
  })

type Generating = Effect.Success<ReturnType<typeof modelOf<"image">>>

/** Whether the model accepts pictures. Models of version 2 do not; models of other versions may not state it. */
const takesPictures = (model: Generating, at: Attempt): Effect.Effect<boolean, JobError> =>
  model.specificationVersion === "v2"
    ? Effect.succeed(false)
    : Effect.map(ask(at, async () => await model.supportsFileInputs), (takes) => takes !== false)

const tokensOf = (usage: ImageModelV4Usage | undefined): Usage => ({
  inputTokens: Json.count(usage?.inputTokens) ?? 0,
  outputTokens: Json.count(usage?.outputTokens) ?? 0
})
