/** Pictures by AI SDK packages. */
import { Effect, Predicate } from "effect"
import type { ImageModelV4File } from "@ai-sdk/provider"
import type { InvalidRequest, JobError } from "../../../contract/JobError.ts"
import type { GuardedFetch } from "../../transport/GuardedFetch.ts"
import type { ImageModel, Picture } from "../../dialects/images/ImageModel.ts"
import type { ImageRequest, ImageSetting } from "../../dialects/images/ImageRequest.ts"
import { fileOf, type ImageSource } from "../../dialects/images/ImageSource.ts"
import { mediaTypeOf } from "../../call/PictureKind.ts"
import * as Json from "../../json/Json.ts"
import { notSupported } from "../../call/Protocol.ts"
import { type Attempt, attempt } from "./AiSdkCall.ts"
import { lostFields, modelOf, providerOptions } from "./AiSdkModel.ts"
import type { Opener } from "./AiSdkPackage.ts"

// Request

export const toFile = (
  source: ImageSource,
  guard: GuardedFetch["Service"]
): Effect.Effect<Extract<ImageModelV4File, { readonly type: "file" }>, InvalidRequest> =>
  Effect.map(fileOf(source, guard), ({ bytes, kind }) => ({ type: "file", data: bytes, mediaType: mediaTypeOf(kind) }))

/** Fields that the SDK lacks. A client can send them under the package's own names. */
const lost = (request: ImageRequest): ReadonlyArray<string> =>
  ([
    ["negative_prompt", request.negativePrompt],
    ["prompt_extend", request.extend],
    ["watermark", request.watermark],
    ["output_format", request.format],
    ["output_compression", request.quality],
    ["user", request.user]
  ] as const).flatMap(([setting, value]) => value === undefined ? [] : [request.pathOf(setting)])

const settings: Readonly<Record<string, ImageSetting>> = { n: "n", size: "size", seed: "seed" }

/** The number of pictures of each call: a model may make fewer per call than the client wants. */
const sharesOf = (n: number, atOnce: number): ReadonlyArray<number> =>
  Array.from({ length: Math.ceil(n / atOnce) }, (_, call) => Math.min(atOnce, n - call * atOnce))

const callsAtOnce = 4

// Answer

/** The revised prompt in a package's metadata. */
const revisedPromptOf = (metadata: unknown, name: string, index: number): string | undefined => {
  const own = Predicate.hasProperty(metadata, name) ? metadata[name] : undefined
  const images = Predicate.hasProperty(own, "images") && Array.isArray(own.images) ? own.images : []
  const image: unknown = images[index]
  return Predicate.hasProperty(image, "revisedPrompt") && typeof image.revisedPrompt === "string"
    ? image.revisedPrompt
    : undefined
}

const bytesIn = (data: string | Uint8Array): Uint8Array => typeof data === "string" ? Buffer.from(data, "base64") : data

export const make = (open: Opener, guard: GuardedFetch["Service"]): ImageModel =>
  Effect.fnUntraced(function*(call, request) {
    const { endpoint } = call
    const opened = yield* open(endpoint)
    const model = yield* modelOf("image", opened, endpoint, call)
    const at: Attempt = { endpoint, secrets: opened.secrets }
    const changes = request.images.length > 0
    if (changes && !(yield* takesPictures(model, at))) return yield* notSupported(call)
    const files = yield* Effect.forEach(request.images, (image) => toFile(image, guard))
    const mask = request.mask === undefined ? undefined : yield* toFile(request.mask, guard)
    const { maxImagesPerCall: atOnce } = model
    const most = (yield* attempt(at, async () =>
      typeof atOnce === "function" ? await atOnce({ modelId: endpoint.model }) : atOnce)) ?? request.n

    const shares = sharesOf(request.n, most)
    const answers = yield* Effect.forEach(shares, (n, index) =>
      attempt(at, (options) =>
        model.doGenerate({
          ...options,
          prompt: request.prompt,
          n,
          size: request.size === undefined ? undefined : `${request.size.width}x${request.size.height}`,
          aspectRatio: undefined,
          // the calls of a request must not make the same pictures
          seed: request.seed === undefined ? undefined : request.seed + index,
          files: changes ? files : undefined,
          mask,
          providerOptions: providerOptions(opened, model, request.extra)
        })), { concurrency: callsAtOnce })

    const name = model.provider.split(".")[0] ?? ""
    const pictures = answers.flatMap(({ images, providerMetadata }) =>
      images.map((data, index): Picture => ({
        content: bytesIn(data),
        revisedPrompt: revisedPromptOf(providerMetadata, name, index)
      }))
    )
    const pathOf = (feature: string) =>
      settings[feature] === undefined ? feature : request.pathOf(settings[feature])
    const unsupported = answers.flatMap(({ warnings }) =>
      lostFields(warnings, pathOf)
    )
    return {
      pictures,
      usage: {
        inputTokens: sumOf(answers.map(({ usage }) => usage?.inputTokens)),
        outputTokens: sumOf(answers.map(({ usage }) => usage?.outputTokens))
      },
      warnings: [...new Set([...lost(request), ...unsupported])]
    }
  })

type Generating = Effect.Success<ReturnType<typeof modelOf<"image">>>

/** Models of version 2 take none; models of other versions may not say. */
const takesPictures = (model: Generating, at: Attempt): Effect.Effect<boolean, JobError> =>
  model.specificationVersion === "v2"
    ? Effect.succeed(false)
    : Effect.map(attempt(at, async () => await model.supportsFileInputs), (takes) => takes !== false)

const sumOf = (counts: ReadonlyArray<unknown>): number =>
  counts.reduce<number>((sum, count) => sum + (Json.count(count) ?? 0), 0)
