/**
 * POST /v1/images/generations: pictures from a prompt.
 *
 * A request has one of two forms: `input.messages` with settings in `parameters`, or `prompt` with settings beside it.
 * Both forms accept settings in either place.
 */
import { Schema, Struct } from "effect"
import { endUserDescription, EpochSeconds, field, integer, isPresent, ModelName, optional, Seed } from "../Fields.ts"
import { imagesOutline } from "../outlines/Outlines.ts"
import type { Operation } from "../Operation.ts"

/** The bounds of each side of a picture, in pixels. */
const minimumSide = 64
const maximumSide = 4096

/** The most images that a request may ask for. */
export const maximumAnswers = 10

const sizePattern = /^(\d{1,5})[x*](\d{1,5})$/

/** The size of a picture in pixels. */
export interface Size {
  readonly width: number
  readonly height: number
}

/** Parses a size; `undefined` for `auto` and for anything that is not a size. */
export const parseSize = (text: string): Size | undefined => {
  const [, width, height] = sizePattern.exec(text) ?? []
  return width === undefined || height === undefined ? undefined : { width: Number(width), height: Number(height) }
}

const isSide = (pixels: number): boolean => pixels >= minimumSide && pixels <= maximumSide

const isSize = (text: string): boolean => {
  const size = parseSize(text)
  return text === "auto" || (size !== undefined && isSide(size.width) && isSide(size.height))
}

/** The settings that `parameters` can hold. The request makes them optional. */
const parameters = {
  n: integer(1, maximumAnswers).annotate({ description: "Number of images, all different.", default: 1 }),
  size: Schema.String.annotate({
    description: "`1024x1024`, `1024*1024`, or `auto` for the model's default. " +
      `Each side has ${minimumSide} to ${maximumSide} pixels.`
  }).check(Schema.makeFilter(isSize, {
    expected: `<width>x<height> or <width>*<height>, each side from ${minimumSide} to ${maximumSide}, or auto`,
    toJsonSchema: () => ({ pattern: `^auto$|${sizePattern.source}` })
  })),
  seed: Seed.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
    description: "With the same seed and request, a model that supports seeds returns the same image."
  }),
  negative_prompt: Schema.String.check(Schema.isMaxLength(4_000)).annotate({
    description: "What the image must not show."
  }),
  prompt_extend: Schema.Boolean.annotate({ description: "Whether the model may extend the prompt." }),
  watermark: Schema.Boolean.annotate({ description: "Whether to mark the image as generated." }),
  response_format: Schema.Literals(["b64_json", "url"]).annotate({
    description: "`b64_json` for the image in the answer, `url` for a signed URL to it.",
    default: "b64_json"
  }),
  output_format: Schema.Literals(["png", "jpeg", "webp"]).annotate({
    description: "Encoding of the images.",
    default: "png"
  }),
  output_compression: integer(0, 100).annotate({ description: "Quality in percent, for `jpeg` and `webp`." })
}

const onlyRelayed =
  "`false` or 0: only providers of this format stream pictures, for requests with `prompt` or as a form."

/** The settings of both picture operations. The requests make them optional. */
export const imageSettings = {
  ...parameters,
  stream: Schema.Literal(false).annotate({ description: onlyRelayed }),
  partial_images: Schema.Literal(0).annotate({ description: onlyRelayed }),
  user: Schema.String.annotate({ description: endUserDescription })
}

export const Prompt = Schema.NonEmptyString.check(Schema.isMaxLength(32_000))

/** A picture is an http(s) URL, a data URL, or base64. */
const Content = Schema.Struct({
  text: optional(Prompt, "What to show or change: 1 to 32,000 characters."),
  image: optional(Schema.NonEmptyString, "An image: an http(s) URL, a data URL, or base64.")
}).check(
  Schema.makeFilter(
    ({ image, text }) => (typeof text === "string") !== (typeof image === "string") || "must hold either text or image",
    { toJsonSchema: () => ({ oneOf: ["text", "image"].map(isPresent) }) }
  )
)

export const Input = Schema.Struct({
  messages: field(
    Schema.Array(Schema.Struct({
      role: field(Schema.Literals(["user", "system", "assistant"]), "Author. The texts of the user are the prompt."),
      content: field(Schema.Array(Content).check(Schema.isMinLength(1)), "Texts and images.")
    })).check(Schema.isMinLength(1)),
    "At least one, with a text of the user."
  )
})

/** The JSON fields of both operations. */
export const imageRequestFields = {
  model: ModelName,
  input: optional(Input, "The prompt as messages, with the images of an edit."),
  parameters: optional(Schema.Struct(Struct.map(Struct.map(parameters, Schema.NullOr), Schema.optionalKey)))
    .annotateKey({ description: "Settings; can also be beside `prompt`." }),
  prompt: optional(Prompt, "The prompt as text, instead of `input`."),
  ...Struct.map(Struct.map(imageSettings, Schema.NullOr), Schema.optionalKey)
}

/** The texts of the user's messages, in order. */
export const textsOf = (messages: typeof Input.Type["messages"]): ReadonlyArray<string> =>
  messages.flatMap(({ content, role }) => role === "user" ? content.flatMap(({ text }) => text ?? []) : [])

/** Checks that a request has exactly one of the two forms, with a prompt. */
export const hasPrompt = Schema.makeFilter((
  { input, prompt }: { readonly input?: typeof Input.Type | null; readonly prompt?: string | null }
) => {
  const messages = input?.messages
  if (messages === undefined) {
    return typeof prompt === "string" ? undefined : { path: ["prompt"], issue: "is required" }
  }
  if (typeof prompt === "string") return { path: ["prompt"], issue: "must not be given beside input" }
  return textsOf(messages).length > 0
    ? undefined
    : { path: ["input", "messages"], issue: "must hold a text in a message of the role user" }
}, { toJsonSchema: () => ({ oneOf: ["prompt", "input"].map(isPresent) }) })

export const ImageGenerationRequest = Schema.Struct(imageRequestFields).check(hasPrompt)
export type ImageGenerationRequest = typeof ImageGenerationRequest.Type

export const ImageResult = Schema.Struct({
  created: EpochSeconds,
  data: field(
    Schema.Array(Schema.Struct({
      url: field(Schema.optionalKey(Schema.String), "URL of the image, signed and limited in time. Needs no API key."),
      b64_json: field(Schema.optionalKey(Schema.String), "The image as base64."),
      revised_prompt: field(
        Schema.optionalKey(Schema.String),
        "The prompt that the model used, if it differs from the request's."
      )
    })),
    "The `n` images, each with `url` or `b64_json`."
  )
})
export type ImageResult = typeof ImageResult.Type

export const imageGenerations = {
  name: "images.generations",
  summary: "Generate images from a prompt",
  paths: ["/v1/images/generations"],
  workloads: ["images"],
  dialect: "openai",
  request: ImageGenerationRequest,
  outline: imagesOutline,
  response: ImageResult,
  streams: ({ stream }) => stream === true,
  description: "A request has one of two forms: `input.messages` with settings in `parameters`, or `prompt` with " +
    "settings beside it. Both forms accept settings in either place.",
  examples: {
    messages: {
      summary: "The prompt in messages, settings in `parameters`",
      model: "local-image",
      body: {
        input: { messages: [{ role: "user", content: [{ text: "A sailing boat at sunset" }] }] },
        parameters: {
          negative_prompt: "people",
          prompt_extend: false,
          watermark: false,
          size: "256*256",
          response_format: "url"
        }
      },
      answer: {
        created: 1795301088,
        data: [{
          url:
            "http://127.0.0.1:8080/v1/results/0b4a4789-d519-46fe-b55b-e7c923cf0c09.png?expires=1795387488&signature=9mA4"
        }]
      }
    },
    prompt: {
      summary: "The prompt as a field, settings beside it",
      model: "local-image",
      body: { prompt: "A sailing boat at sunset", size: "256x256", n: 1, seed: 7 },
      answer: { created: 1795301088, data: [{ b64_json: "iVBORw0KGgoAAAANSUhEUgAA…" }] }
    }
  }
} satisfies Operation
