/** Decodes all forms of picture requests (messages, prompt, multipart) to one type. */
import { Effect, Predicate } from "effect"
import { ImageEditForm, ImageEditRequest } from "../../../contract/operations/ImageEdits.ts"
import {
  ImageGenerationRequest,
  imageRequestFields,
  imageSettings,
  Input,
  parseSize,
  type Size,
  textsOf
} from "../../../contract/operations/ImageGenerations.ts"
import { InvalidRequest } from "../../../contract/JobError.ts"
import { formOf, formReader, isForm, reader } from "../../call/RequestBody.ts"
import * as ExactJson from "../../../bounds/ExactJson.ts"
import type { Call } from "../../call/Protocol.ts"
import { unknownFields } from "../../json/UnknownFields.ts"
import { exactSeed } from "../conversation/ClientRequest.ts"
import type { Seed } from "../conversation/Conversation.ts"
import * as Losses from "../conversation/Losses.ts"
import { fatesOf } from "../conversation/SchemaFates.ts"
import type { ImageSource } from "./ImageSource.ts"
import type { PictureKind } from "../../call/PictureKind.ts"

export type ImageSetting = keyof typeof imageSettings

/** The API's names of settings. */
const apiNames = {
  seed: "seed",
  negativePrompt: "negative_prompt",
  extend: "prompt_extend",
  watermark: "watermark",
  format: "output_format",
  quality: "output_compression",
  user: "user"
} as const satisfies { readonly [field: string]: ImageSetting }

/** The client's paths of those settings that the request has. */
export const pathsOf = (
  request: ImageRequest,
  settings: ReadonlyArray<keyof typeof apiNames>
): ReadonlyArray<string> =>
  settings.filter((setting) => request[setting] !== undefined).map((setting) => request.pathOf(apiNames[setting]))

/** The provider chooses missing settings. */
export interface ImageRequest {
  readonly prompt: string
  /** The field with the prompt. */
  readonly promptParam: string
  readonly images: ReadonlyArray<ImageSource>
  readonly mask?: ImageSource | undefined
  /** Number of pictures, at least 1. */
  readonly n: number
  readonly size?: Size | undefined
  /** With all its digits. */
  readonly seed?: Seed | undefined
  readonly negativePrompt?: string | undefined
  readonly extend?: boolean | undefined
  readonly watermark?: boolean | undefined
  readonly answerAs: "b64_json" | "url"
  readonly format?: PictureKind | undefined
  /** Percent. */
  readonly quality?: number | undefined
  /** End-user identifier supplied by the client. */
  readonly user?: string | undefined
  /** The client's `input`, if the request has messages. */
  readonly input?: unknown
  /** Unknown fields of the body and of `parameters`, for the provider. */
  readonly extra: Readonly<Record<string, unknown>>
  /** Fields that have no place here. */
  readonly lost: ReadonlyArray<string>
  /** Fields of the client's `input` that have no place here. */
  readonly lostInMessages: ReadonlyArray<string>
  /** The path of a setting in the client's request. */
  readonly pathOf: (setting: ImageSetting) => string
}

type Settings = Partial<Omit<ImageEditRequest, "input" | "prompt" | "image" | "mask" | "model" | "parameters">>

const settingsOf = (top: Settings, nested: Settings | null | undefined) => ({
  n: nested?.n ?? top.n ?? 1,
  size: parseSize(nested?.size ?? top.size ?? "auto"),
  seed: nested?.seed ?? top.seed ?? undefined,
  negativePrompt: nested?.negative_prompt ?? top.negative_prompt ?? undefined,
  extend: nested?.prompt_extend ?? top.prompt_extend ?? undefined,
  watermark: nested?.watermark ?? top.watermark ?? undefined,
  answerAs: nested?.response_format ?? top.response_format ?? "b64_json",
  format: nested?.output_format ?? top.output_format ?? undefined,
  quality: nested?.output_compression ?? top.output_compression ?? undefined,
  user: top.user ?? undefined,
  lost: (Object.keys(nested ?? {}) as ReadonlyArray<keyof Settings>)
    .filter((name) => isGiven(nested?.[name]) && isGiven(top[name]))
    .map((name) => `${name} gives way to parameters.${name}`),
  lostInMessages: [],
  pathOf: (setting: ImageSetting) => {
    const inner: Partial<Record<ImageSetting, unknown>> = nested ?? {}
    return inner[setting] === undefined || inner[setting] === null ? setting : `parameters.${setting}`
  }
})

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

const inputFates = fatesOf(Input)

/** A prompt is the user's only. */
const lostIn = (input: unknown, messages: typeof Input.Type["messages"]): ReadonlyArray<string> => [
  ...Losses.lostIn(input, inputFates, "input"),
  ...messages.flatMap(({ content, role }, index) => {
    if (role === "user") return []
    const path = `input.messages[${index}]`
    return [
      content.some(({ text }) => typeof text === "string")
        ? `${path} is not part of the prompt: its role is ${role}`
        : `${path}.role has no effect on images`
    ]
  })
]

const known = new Set([...Object.keys(imageRequestFields), ...Object.keys(imageSettings), "image", "image[]", "mask"])

const unknownIn = (body: unknown) => ({
  extra: {
    ...unknownFields(body, known),
    ...unknownFields(Predicate.isObject(body) ? body["parameters"] : undefined, known)
  },
  input: Predicate.isObject(body) ? body["input"] : undefined
})

const fromJson = (body: unknown, request: ImageGenerationRequest | ImageEditRequest): ImageRequest => {
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
    ...settingsOf(request, request.parameters),
    ...unknownIn(body),
    lostInMessages: lostIn(Predicate.isObject(body) ? body["input"] : undefined, messages),
    prompt: request.prompt ?? textsOf(messages).join("\n"),
    promptParam: typeof request.prompt === "string" ? "prompt" : "input.messages",
    images: [...inMessages, ...sourcesOf(image)],
    mask: typeof mask === "string" ? { content: mask, param: "mask" } : undefined
  }
}

const fromForm = (fields: FormData, form: ImageEditForm): ImageRequest => ({
  ...settingsOf(form, undefined),
  seed: seedIn(fields),
  ...unknownIn(Object.fromEntries([...fields].filter(([, value]) => typeof value === "string"))),
  lost: Losses.lostFiles(fields, known),
  prompt: form.prompt,
  promptParam: "prompt",
  images: sourcesOf(form.image),
  mask: form.mask === undefined ? undefined : { content: form.mask, param: "mask" }
})

const seedIn = (fields: FormData): Seed | undefined => {
  const seed = fields.get("seed")
  const digits = typeof seed === "string" ? ExactJson.toBigInt({ rawJSON: seed }) : undefined
  return digits === undefined ? undefined : ExactJson.fromBigInt(digits)
}

const sourcesOf = (
  image: string | File | ReadonlyArray<string | File> | null | undefined
): ReadonlyArray<ImageSource> => {
  if (image === undefined || image === null) return []
  return typeof image === "string" || image instanceof File
    ? [{ content: image, param: "image" }]
    : image.map((content, at) => ({ content, param: `image[${at}]` }))
}

/** Seeds have 64 bits, and JavaScript's numbers 53. */
export const withExactSeed = (request: ImageRequest, call: Call): ImageRequest =>
  typeof request.seed !== "number" || Number.isSafeInteger(request.seed)
    ? request
    : { ...request, seed: exactSeed(call, request.pathOf("seed")) ?? request.seed }

const generationOf = reader(ImageGenerationRequest)
const editOf = reader(ImageEditRequest)
const decodeForm = formReader(ImageEditForm)

export const readGeneration = Effect.fnUntraced(function*(call: Call) {
  const { json, request: decoded } = yield* generationOf(call)
  const request = withExactSeed(fromJson(json, decoded), call)
  const [image] = request.images
  if (image === undefined) return request
  return yield* InvalidRequest.at(image.param, "is not supported here: send images to /v1/images/edits")
})

export const readEdit = Effect.fnUntraced(function*(call: Call) {
  if (isForm(call)) {
    const form = yield* formOf(call)
    return fromForm(form, yield* decodeForm(form))
  }
  const { json, request } = yield* editOf(call)
  return withExactSeed(fromJson(json, request), call)
})
