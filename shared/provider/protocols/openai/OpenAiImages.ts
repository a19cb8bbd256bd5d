/**
 * Generates and edits pictures by the OpenAI dialect. Translates requests of other forms: messages, generated content, edits in JSON
 * instead of a form, and edits with pictures as text instead of files. Relays all others.
 */
import { Effect, Schema } from "effect"
import { imageGenerations } from "../../../contract/operations/ImageGenerations.ts"
import type { GuardedFetch } from "../../transport/GuardedFetch.ts"
import type { Dependencies } from "../../dialects/images/ImageAnswer.ts"
import type { ImageModel, Picture } from "../../dialects/images/ImageModel.ts"
import { type ImageRequest, pathsOf } from "../../dialects/images/ImageRequest.ts"
import * as Images from "../../dialects/images/Images.ts"
import { fileOf, type ImageSource } from "../../dialects/images/ImageSource.ts"
import { mediaTypeOf } from "../../call/PictureKind.ts"
import { isForm } from "../../call/RequestBody.ts"
import type { ExchangeTools } from "../../exchange/Exchange.ts"
import * as JsonExchange from "../../exchange/JsonExchange.ts"
import * as JsonText from "../../json/JsonText.ts"
import type { Endpoint } from "../../transport/Endpoint.ts"
import type { Call, Perform } from "../../call/Protocol.ts"
import * as MultipartText from "./MultipartText.ts"
import { imagePaths } from "./OpenAi.ts"
import { usageOf } from "../../dialects/openai/OpenAiUsage.ts"
import * as OwnAddresses from "./OwnAddresses.ts"

export interface Tools extends Dependencies, ExchangeTools {}

/** Serves the requests that the relay cannot, and replaces the relay's URLs at the provider's own origin. */
export const around = (relay: Perform, tools: Tools): Perform => {
  const translations = Images.performs(model(tools), tools)
  const pictures = OwnAddresses.around(relay, tools)
  const performOf = (call: Call): Perform => {
    if (call.workload !== "images") return relay
    return isOther(call) ? translations.get(call.operation.name) ?? pictures : pictures
  }
  return (call, sink) => performOf(call)(call, sink)
}

const isOther = (call: Call): boolean => {
  if (isForm(call)) return hasPictureAsText(call)
  return call.operation.name !== imageGenerations.name ||
    JsonText.members(call.body)?.some(({ name }) => name === "input") === true
}

/** Whether a form has pictures as text. In the dialect's own forms, pictures are files. */
const hasPictureAsText = ({ body, contentType }: Call): boolean =>
  MultipartText.names(body, contentType).some((name) => /^(?:image|mask)(?:\[|$)/.test(name))

// Request

/** The fields other than the pictures. Omits `response_format`, which not every model accepts. */
const toFields = ({ model }: Endpoint, request: ImageRequest): Readonly<Record<string, unknown>> => ({
  ...request.extra,
  model,
  prompt: request.prompt,
  ...(request.n === 1 ? {} : { n: request.n }),
  ...(request.size === undefined ? {} : { size: `${request.size.width}x${request.size.height}` }),
  ...(request.format === undefined ? {} : { output_format: request.format }),
  ...(request.quality === undefined ? {} : { output_compression: request.quality }),
  ...(request.user === undefined ? {} : { user: request.user })
})

const toForm = Effect.fnUntraced(function*(
  endpoint: Endpoint,
  request: ImageRequest,
  guard: GuardedFetch["Service"]
) {
  const form = new FormData()
  for (const [name, value] of Object.entries(toFields(endpoint, request))) {
    form.set(name, typeof value === "string" ? value : JSON.stringify(value))
  }
  const toFile = (source: ImageSource) =>
    Effect.map(
      fileOf(source, guard),
      ({ bytes, kind }) => new File([Uint8Array.from(bytes)], `image.${kind}`, { type: mediaTypeOf(kind) })
    )
  const name = request.images.length === 1 ? "image" : "image[]"
  for (const image of request.images) form.append(name, yield* toFile(image))
  if (request.mask !== undefined) form.set("mask", yield* toFile(request.mask))
  return form
})

// Answer

const Answer = Schema.Struct({
  data: Schema.Array(Schema.Struct({
    b64_json: Schema.optionalKey(Schema.NullOr(Schema.String)),
    url: Schema.optionalKey(Schema.NullOr(Schema.String)),
    revised_prompt: Schema.optionalKey(Schema.NullOr(Schema.String))
  })),
  usage: Schema.optionalKey(Schema.Unknown)
})

const toPicture = (
  { b64_json: base64, revised_prompt: revisedPrompt, url }: typeof Answer.Type["data"][number]
): Picture => ({
  content: typeof base64 === "string" ? Buffer.from(base64, "base64") : url ?? new Uint8Array(),
  revisedPrompt: revisedPrompt ?? undefined
})

const model = ({ guard, ...tools }: Tools): ImageModel => {
  const exchange = JsonExchange.make(tools, Answer)
  return Effect.fnUntraced(function*({ endpoint }, request) {
    const { data, usage } = yield* request.images.length === 0
      ? exchange(endpoint, { path: imagePaths.generations, body: toFields(endpoint, request) })
      : exchange(endpoint, { path: imagePaths.edits, form: yield* toForm(endpoint, request, guard) })
    return {
      pictures: data.map(toPicture),
      usage: usageOf(usage),
      warnings: pathsOf(request, ["negativePrompt", "extend", "watermark", "seed"])
    }
  })
}
