/** Brings the forms of a request for pictures, messages, prompt and multipart, into one. */
import { Effect, Schema } from "effect"
import type { ImageEditForm as EditForm, ImageEditRequest as EditRequest } from "../../shared/contract/ImageEdits.ts"
import { ImageEditForm, ImageEditRequest } from "../../shared/contract/ImageEdits.ts"
import { ImageGenerationRequest, parseSize, type Size, textsOf } from "../../shared/contract/ImageGenerations.ts"
import { InvalidRequest } from "../../shared/contract/JobError.ts"
import { decoder } from "../../shared/provider/local/RequestBody.ts"
import type { Call } from "../../shared/provider/Protocol.ts"

/** A picture as the client gave it, and the path of the field in which it did. */
export interface ImageSource {
  /** An http(s) URL, a data URL or base64; or the bytes of a file. */
  readonly content: string | File
  readonly param: string
}

export interface ImageRequest {
  readonly prompt: string
  readonly images: ReadonlyArray<ImageSource>
  readonly mask: ImageSource | undefined
  readonly n: number
  /** `undefined` where the client leaves it to the engine. */
  readonly size: Size | undefined
  readonly seed: number
  readonly negativePrompt: string
  readonly extend: boolean
  readonly watermark: boolean
  readonly answerAs: "b64_json" | "url"
  readonly format: "png" | "jpeg" | "webp"
  /** Percent. */
  readonly quality: number
}

/** What the built-in engine paints, in pixels: larger sizes are for other providers. */
const largestSide = 2048

const defaultQuality = 90

const decodeGeneration = decoder(ImageGenerationRequest)
const decodeEdit = decoder(ImageEditRequest)
const decodeForm = Schema.decodeUnknownEffect(ImageEditForm)

type Settings = Omit<EditRequest, "input" | "prompt" | "image" | "mask" | "model" | "parameters">

const settingsOf = Effect.fnUntraced(function*(top: Settings, nested: Settings | null | undefined) {
  const size = parseSize(nested?.size ?? top.size ?? "auto")
  if (size !== undefined && Math.max(size.width, size.height) > largestSide) {
    const param = typeof nested?.size === "string" ? "parameters.size" : "size"
    const message = `${param}: Expected sides of at most ${largestSide} pixels for this model`
    return yield* new InvalidRequest({ message, param, code: "invalid_value" })
  }
  return {
    size,
    n: nested?.n ?? top.n ?? 1,
    seed: nested?.seed ?? top.seed ?? 0,
    negativePrompt: nested?.negative_prompt ?? top.negative_prompt ?? "",
    extend: nested?.prompt_extend ?? top.prompt_extend ?? false,
    watermark: nested?.watermark ?? top.watermark ?? false,
    answerAs: nested?.response_format ?? top.response_format ?? "b64_json",
    format: nested?.output_format ?? top.output_format ?? "png",
    quality: nested?.output_compression ?? top.output_compression ?? defaultQuality
  } as const
})

const fromJson = Effect.fnUntraced(function*(request: ImageGenerationRequest | EditRequest) {
  const messages = request.input?.messages ?? []
  const image = "image" in request ? request.image : undefined
  const mask = "mask" in request ? request.mask : undefined
  const inMessages = messages.flatMap(({ content }, message) =>
    content.flatMap((part, at): ReadonlyArray<ImageSource> =>
      typeof part.image === "string"
        ? [{ content: part.image, param: `input.messages[${message}].content[${at}].image` }]
        : []
    )
  )
  return {
    ...yield* settingsOf(request, request.parameters),
    prompt: request.prompt ?? textsOf(messages).join("\n"),
    images: [...inMessages, ...sourcesOf(image)],
    mask: typeof mask === "string" ? { content: mask, param: "mask" } : undefined
  } satisfies ImageRequest
})

const fromForm = Effect.fnUntraced(function*(form: EditForm) {
  return {
    ...yield* settingsOf(form, undefined),
    prompt: form.prompt,
    images: sourcesOf(form.image),
    mask: form.mask === undefined ? undefined : { content: form.mask, param: "mask" }
  } satisfies ImageRequest
})

const sourcesOf = (
  image: string | File | ReadonlyArray<string | File> | null | undefined
): ReadonlyArray<ImageSource> => {
  if (image === undefined || image === null) return []
  return typeof image === "string" || image instanceof File
    ? [{ content: image, param: "image" }]
    : image.map((content, at) => ({ content, param: `image[${at}]` }))
}

/** The request of a call for pictures from a prompt. */
export const readGeneration = Effect.fnUntraced(function*(call: Call) {
  const request = yield* Effect.flatMap(decodeGeneration(call), fromJson)
  const [image] = request.images
  if (image === undefined) return request
  const message = `${image.param}: pictures are taken by /v1/images/edits`
  return yield* new InvalidRequest({ message, param: image.param, code: "invalid_value" })
})

/** The request of a call for changes to pictures. */
export const readEdit = (call: Call): Effect.Effect<ImageRequest, InvalidRequest> =>
  call.contentType.toLowerCase().startsWith("multipart/form-data")
    ? Effect.tryPromise(() =>
      new Response(call.body as Uint8Array<ArrayBuffer>, { headers: { "content-type": call.contentType } }).formData()
    ).pipe(
      Effect.flatMap(decodeForm),
      // ingress has validated it already
      Effect.mapError(() =>
        new InvalidRequest({ message: "The body cannot be read", param: null, code: "invalid_form" })
      ),
      Effect.flatMap(fromForm)
    )
    : Effect.flatMap(decodeEdit(call), fromJson)
