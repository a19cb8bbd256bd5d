/**
 * The `dashscope` protocol of Alibaba Cloud: generates and edits pictures in one synchronous call. `DashScopeVideo.ts` makes
 * videos.
 *
 * Requests with messages already have nearly DashScope's form; all others are translated to it. DashScope answers with URLs of the
 * pictures, which expire after a day.
 */
import { Effect, Schema } from "effect"
import { InvalidRequest } from "../../../contract/JobError.ts"
import type { Dependencies } from "../../dialects/images/ImageAnswer.ts"
import type { GeneratedPictures, ImageModel } from "../../dialects/images/ImageModel.ts"
import * as Images from "../../dialects/images/Images.ts"
import { type ImageRequest, pathsOf } from "../../dialects/images/ImageRequest.ts"
import { urlOf } from "../../dialects/images/ImageSource.ts"
import type { ExchangeTools } from "../../exchange/Exchange.ts"
import * as JsonExchange from "../../exchange/JsonExchange.ts"
import { type Call, type Perform, performByName } from "../../call/Protocol.ts"

export const make = (tools: Dependencies & ExchangeTools): Perform =>
  performByName(Images.performs(model(tools), tools, { takesMessages: true }))

const path = "/api/v1/services/aigc/multimodal-generation/generation"

// Request

const toParameters = (request: ImageRequest) => ({
  ...request.extra,
  n: request.n === 1 ? undefined : request.n,
  size: request.size === undefined ? undefined : `${request.size.width}*${request.size.height}`,
  seed: request.seed,
  negative_prompt: request.negativePrompt,
  prompt_extend: request.extend,
  watermark: request.watermark
})

/** Replaces pictures by URLs, because DashScope rejects bare base64. */
const withUrls = (input: unknown, urls: ReadonlyMap<unknown, string>): unknown =>
  JSON.parse(
    JSON.stringify(input),
    (name, value: unknown) => name === "image" ? urls.get(value) ?? value : value
  )

/** The client's messages, or one message with the pictures before the prompt, as in DashScope's examples. */
const toInput = Effect.fnUntraced(function*({ images, input, prompt }: ImageRequest) {
  const urls = new Map<unknown, string>()
  for (const image of images) urls.set(image.content, yield* urlOf(image))
  if (input !== undefined) return withUrls(input, urls)
  // one for each picture, even if several are equal: the prompt may count them
  const pictures = images.map(({ content }) => ({ image: urls.get(content) }))
  return { messages: [{ role: "user", content: [...pictures, { text: prompt }] }] }
})

const toBody = Effect.fnUntraced(function*({ endpoint }: Call, request: ImageRequest) {
  if (request.mask !== undefined) {
    return yield* InvalidRequest.at(request.mask.param, "must be left out: this model takes no mask")
  }
  return { model: endpoint.model, input: yield* toInput(request), parameters: toParameters(request) }
})

/** The paths of lost fields. DashScope's pictures are always PNG files, and messages hold their pictures themselves. */
const lost = (request: ImageRequest): ReadonlyArray<string> => [
  ...pathsOf(request, request.format === "png" ? ["quality", "user"] : ["format", "quality", "user"]),
  ...request.images.flatMap(({ param }) => request.input === undefined || param.startsWith("input.") ? [] : [param])
]

// Answer

const Answer = Schema.Struct({
  output: Schema.Struct({
    choices: Schema.Array(Schema.Struct({
      message: Schema.Struct({
        content: Schema.Array(Schema.Struct({
          image: Schema.optionalKey(Schema.NullOr(Schema.String)),
          text: Schema.optionalKey(Schema.NullOr(Schema.String))
        }))
      })
    }))
  })
})

const picturesIn = ({ output }: typeof Answer.Type): GeneratedPictures["pictures"] =>
  output.choices.flatMap(({ message: { content } }) => {
    const revisedPrompt = content.find(({ text }) => typeof text === "string")?.text ?? undefined
    return content.flatMap(({ image }) => image ?? []).map((content) => ({ content, revisedPrompt }))
  })

const model = (tools: ExchangeTools): ImageModel => {
  const exchange = JsonExchange.make(tools, Answer)
  return Effect.fnUntraced(function*(call, request) {
    const body = yield* toBody(call, request)
    const answer = yield* exchange(call.endpoint, { path, body })
    return { pictures: picturesIn(answer), warnings: lost(request) }
  })
}
