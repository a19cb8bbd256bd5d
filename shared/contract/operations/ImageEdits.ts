/**
 * POST /v1/images/edits: changes pictures as instructed.
 *
 * A request has one of the two JSON forms of image generations, with the pictures in the messages or in `image`. Or it is
 * `multipart/form-data`, with the pictures as files named `image` or `image[]`.
 */
import { Schema, Struct } from "effect"
import { hasPrompt, imageRequestFields, ImageResult, imageSettings, type Input, Prompt } from "./ImageGenerations.ts"
import { formField, formFile, isPresent, ModelName, optional } from "../Fields.ts"
import { imagesForm } from "../outlines/Outlines.ts"
import type { Operation } from "../Operation.ts"

/** The most images that a request may change. */
export const maximumImages = 16

const severalOf = <S extends Schema.Constraint>(image: S) =>
  Schema.Union([image, Schema.Array(image).check(Schema.isMinLength(1))])

/** An http(s) URL, a data URL, or base64. */
const ImageText = Schema.NonEmptyString

interface Pictures {
  readonly input?: typeof Input.Type | null
  readonly image?: unknown
}

/** The pictures in the messages, in order. */
export const imagesOf = (messages: typeof Input.Type["messages"]): ReadonlyArray<string> =>
  messages.flatMap(({ content }) => content.flatMap(({ image }) => image ?? []))

const maskDescription = "Only the parts of the image where this one is transparent change."

const checkImages = ({ image, input }: Pictures) => {
  if (input === undefined || input === null) {
    if (image === undefined || image === null) return { path: ["image"], issue: "is required" }
    return Array.isArray(image) && image.length > maximumImages
      ? { path: ["image"], issue: `must hold at most ${maximumImages} images` }
      : undefined
  }
  const { length } = imagesOf(input.messages)
  return length > 0 && length <= maximumImages
    ? undefined
    : { path: ["input", "messages"], issue: `must hold from 1 to ${maximumImages} images` }
}

/** The bound on pictures in JSON Schema. */
const bounded = { properties: { image: { maxItems: maximumImages } } }

const hasImage = Schema.makeFilter(checkImages, {
  toJsonSchema: () => ({ anyOf: ["image", "input"].map(isPresent), ...bounded })
})

export const ImageEditRequest = Schema.Struct({
  ...imageRequestFields,
  image: optional(severalOf(ImageText), "Images beside `prompt`: http(s) URLs, data URLs, or base64."),
  mask: optional(ImageText, maskDescription)
}).check(hasPrompt, hasImage)
export type ImageEditRequest = typeof ImageEditRequest.Type

export const ImageEditForm = Schema.fromFormData(
  Schema.Struct({
    model: ModelName,
    prompt: Prompt.annotateKey({ description: "How to change the images." }),
    image: severalOf(Schema.Union([formFile, ImageText])).annotateKey({
      description: "Files, or texts as in JSON. Several can be named `image[]`."
    }),
    mask: Schema.optionalKey(Schema.Union([formFile, ImageText])).annotateKey({ description: maskDescription }),
    ...Struct.map(imageSettings, formField)
  }).check(Schema.makeFilter(checkImages, { toJsonSchema: () => bounded }))
)
export type ImageEditForm = typeof ImageEditForm.Type

/** The picture in the examples: 8 × 8 blue pixels. */
const picture =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAMAAADz0U65AAAAA1BMVEU6bqXTREzSAAAACXBIWXMAAAPoAAAD6" +
  "AG1e1JrAAAADElEQVQI12NgoA4AAABIAAH/myMhAAAAAElFTkSuQmCC"

const edited = { created: 1795301088, data: [{ b64_json: "iVBORw0KGgoAAAANSUhEUgAA…" }] }

export const imageEdits = {
  name: "images.edits",
  summary: "Change images as instructed",
  paths: ["/v1/images/edits"],
  workloads: ["images"],
  dialect: "openai",
  request: ImageEditRequest,
  form: ImageEditForm,
  formOutline: imagesForm,
  response: ImageResult,
  streams: ({ stream }) => stream === true,
  description:
    "A request has one of three forms: images and instruction in `input.messages`, in the fields `image` and `prompt`, " +
    "or `multipart/form-data` with images as files or texts.",
  examples: {
    messages: {
      summary: "Image and instruction in messages",
      model: "local-image",
      body: {
        input: { messages: [{ role: "user", content: [{ image: picture }, { text: "Make it grayscale" }] }] },
        parameters: { n: 1 }
      },
      answer: edited
    },
    fields: {
      summary: "Image and instruction as fields",
      model: "local-image",
      body: { image: picture, prompt: "Make it grayscale" },
      answer: edited
    },
    form: {
      summary: "A form; an image is a file, or a text as here",
      model: "local-image",
      body: { image: picture, prompt: "Make it grayscale" },
      isForm: true,
      answer: edited
    }
  }
} satisfies Operation
