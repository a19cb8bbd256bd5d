/**
 * POST /v1/images/generations: the request for pictures and the answer with them.
 *
 * There are two forms of request, told apart by what they hold: `input.messages` with the prompt as a text, or `prompt`.
 * What can be set stands in `parameters` in the one form and beside the prompt in the other; it is taken from either
 * place. Clients send `null` for what they leave out, so every optional field takes it.
 */
import { Schema } from "effect"
import { given, integer, ModelName, optional } from "../Fields.ts"
import type { Operation } from "../Operation.ts"

/** The shortest and the longest side of a picture, in pixels. */
const minimumSide = 64
const maximumSide = 4096

const sizePattern = /^(\d{1,5})[x*](\d{1,5})$/

export interface Size {
  readonly width: number
  readonly height: number
}

/** Width and height in pixels; `undefined` for `auto` and for what is no size. */
export const parseSize = (text: string): Size | undefined => {
  const [, width, height] = sizePattern.exec(text) ?? []
  return width === undefined || height === undefined ? undefined : { width: Number(width), height: Number(height) }
}

const isSide = (pixels: number): boolean => pixels >= minimumSide && pixels <= maximumSide

const isSize = (text: string): boolean => {
  const size = parseSize(text)
  return text === "auto" || (size !== undefined && isSide(size.width) && isSide(size.height))
}

/** What can be asked of both operations on pictures, each field as its plain value. */
export const imageSettings = {
  n: integer(1, 10).annotate({
    description: "How many pictures, no two alike."
  }),
  size: Schema.String.annotate({
    description: "`1024x1024`, `1024*1024`, or `auto`: what the model takes by itself. " +
      `Each side has ${minimumSide} to ${maximumSide} pixels.`
  })
    .check(
      Schema.makeFilter(isSize, {
        expected: `<width>x<height> or <width>*<height>, each side from ${minimumSide} to ${maximumSide}, or auto`,
        toJsonSchema: () => ({ pattern: `^auto$|${sizePattern.source}` })
      })
    ),
  seed: integer(0, Number.MAX_SAFE_INTEGER).annotate({
    description: "The same seed and prompt give the same picture."
  }),
  negative_prompt: Schema.String.check(Schema.isMaxLength(4_000)).annotate({
    description: "What the picture must not show."
  }),
  prompt_extend: Schema.Boolean.annotate({ description: "Whether the model may add to the prompt." }),
  watermark: Schema.Boolean.annotate({ description: "Whether the picture is marked as made by a machine." }),
  response_format: Schema.Literals(["b64_json", "url"]).annotate({
    description: "`b64_json` unless said otherwise."
  }),
  output_format: Schema.Literals(["png", "jpeg", "webp"]).annotate({ description: "`png` unless said otherwise." }),
  output_compression: integer(0, 100).annotate({
    description: "Percent, for `jpeg` and `webp`."
  }),
  stream: Schema.Literal(false).annotate({ description: "Pictures are answered whole." }),
  partial_images: Schema.Literal(0).annotate({ description: "Pictures are answered whole." }),
  user: Schema.String.annotate({ description: "Who asks, as the client tells its users apart." })
}

export const Prompt = Schema.NonEmptyString.check(Schema.isMaxLength(32_000))

/** A piece of a message. A picture is an http(s) URL, a data URL, or base64. */
const Content = Schema.Struct({
  text: optional(Prompt),
  image: optional(Schema.NonEmptyString)
}).check(
  Schema.makeFilter(
    ({ image, text }) => (typeof text === "string") !== (typeof image === "string") || "must hold either text or image",
    {
      toJsonSchema: () => ({ oneOf: ["text", "image"].map(given) })
    }
  )
)

export const Input = Schema.Struct({
  messages: Schema.Array(Schema.Struct({
    role: Schema.Literals(["user", "system", "assistant"]),
    content: Schema.Array(Content).check(Schema.isMinLength(1))
  })).check(Schema.isMinLength(1))
})

const optionalSettings = {
  n: optional(imageSettings.n),
  size: optional(imageSettings.size),
  seed: optional(imageSettings.seed),
  negative_prompt: optional(imageSettings.negative_prompt),
  prompt_extend: optional(imageSettings.prompt_extend),
  watermark: optional(imageSettings.watermark),
  response_format: optional(imageSettings.response_format),
  output_format: optional(imageSettings.output_format),
  output_compression: optional(imageSettings.output_compression)
}

/** The fields of both operations, as JSON has them. */
export const imageRequestFields = {
  model: ModelName,
  input: optional(Input).annotateKey({
    description: "The prompt in the form of messages, with the pictures of an edit."
  }),
  parameters: optional(Schema.Struct(optionalSettings)).annotateKey({
    description: "Settings, as they can also stand beside the prompt."
  }),
  prompt: optional(Prompt).annotateKey({ description: "The prompt in the form of fields; not beside `input`." }),
  ...optionalSettings,
  stream: optional(imageSettings.stream),
  partial_images: optional(imageSettings.partial_images),
  user: optional(imageSettings.user)
}

type Messages = typeof Input.Type["messages"]

/** The texts of the messages of the user, in their order. */
export const textsOf = (messages: Messages): ReadonlyArray<string> =>
  messages.flatMap(({ content, role }) => role === "user" ? content.flatMap(({ text }) => text ?? []) : [])

/** Exactly one form of the request, and a prompt in it. */
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
}, { toJsonSchema: () => ({ oneOf: ["prompt", "input"].map(given) }) })

export const ImageGenerationRequest = Schema.Struct(imageRequestFields).check(hasPrompt)
export type ImageGenerationRequest = typeof ImageGenerationRequest.Type

export const ImageResult = Schema.Struct({
  created: Schema.Int.annotateKey({ description: "Seconds since the epoch." }),
  data: Schema.Array(Schema.Struct({
    url: Schema.optionalKey(Schema.String),
    b64_json: Schema.optionalKey(Schema.String),
    revised_prompt: Schema.optionalKey(Schema.String).annotateKey({
      description: "What was painted, or done, where that is not just what was asked for."
    })
  }))
})
export type ImageResult = typeof ImageResult.Type

export const imageGenerations = {
  name: "images.generations",
  summary: "Generate pictures from a prompt",
  paths: ["/v1/images/generations"],
  workloads: ["images"],
  dialect: "openai",
  request: ImageGenerationRequest,
  response: ImageResult,
  streams: () => false,
  description: "There are two forms of request: `input.messages` with settings in `parameters`, and `prompt` with " +
    "settings beside it. Settings are taken from either place.",
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
            "http://127.0.0.1:8080/v1/files/0b4a4789-d519-46fe-b55b-e7c923cf0c09.png?expires=1795387488&signature=9mA4"
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
