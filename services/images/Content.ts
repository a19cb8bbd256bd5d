/** generateContent for models that make pictures: paints from text, or changes the pictures among the parts. */
import { Effect } from "effect"
import { randomUUID } from "node:crypto"
import {
  type GenerateContentAnswer,
  GenerateContentRequest,
  streamGenerateContent
} from "../../shared/contract/GenerateContent.ts"
import { InvalidRequest } from "../../shared/contract/JobError.ts"
import type { Usage } from "../../shared/contract/Usage.ts"
import { toUsageMetadata } from "../../shared/provider/chat/GenerateContent.ts"
import { decoder } from "../../shared/provider/local/RequestBody.ts"
import { loadTokenizer } from "../../shared/provider/local/Tokens.ts"
import type { Perform } from "../../shared/provider/Protocol.ts"
import { edit, type EditTools } from "./Edit.ts"
import { generate } from "./Generate.ts"
import type { ImageRequest, ImageSource } from "./ImageRequest.ts"
import type { Result } from "./Results.ts"

const decode = decoder(GenerateContentRequest)
const utf8 = new TextEncoder()

/** The longer side of a picture, in pixels. */
const sides: ReadonlyMap<string, number> = new Map([["512", 512], ["1K", 1024], ["2K", 2048]])

const pictureOf = Effect.fnUntraced(function*(request: GenerateContentRequest) {
  const config = request.generationConfig
  const wanted = config?.imageConfig?.imageSize ?? "1K"
  const side = sides.get(wanted)
  if (side === undefined) {
    const param = "generationConfig.imageConfig.imageSize"
    const message = `${param}: this model makes pictures of ${[...sides.keys()].join(", ")}, not of ${wanted}`
    return yield* new InvalidRequest({ message, param, code: "invalid_value" })
  }
  const ratio = config?.imageConfig?.aspectRatio
  const [width = 1, height = 1] = (ratio ?? "1:1").split(":").map(Number)
  const longer = Math.max(width, height)
  const parts = request.contents.flatMap(({ parts }, content) => parts.map((part, at) => ({ content, at, part })))
  const images = parts.flatMap(({ at, content, part }): ReadonlyArray<ImageSource> => {
    const where = `contents[${content}].parts[${at}]`
    if (part.inlineData) return [{ content: part.inlineData.data, param: `${where}.inlineData.data` }]
    return part.fileData ? [{ content: part.fileData.fileUri, param: `${where}.fileData.fileUri` }] : []
  })
  return {
    prompt: parts.flatMap(({ part }) => typeof part.text === "string" ? [part.text] : []).join("\n"),
    images,
    mask: undefined,
    n: config?.candidateCount ?? 1,
    // a picture that is changed keeps its size unless another is asked for
    size: images.length > 0 && ratio === undefined
      ? undefined
      : { width: Math.round(side * width / longer), height: Math.round(side * height / longer) },
    seed: config?.seed ?? 0,
    negativePrompt: "",
    extend: false,
    watermark: false,
    answerAs: "b64_json",
    format: "png",
    quality: 90
  } satisfies ImageRequest
})

/** Both kinds of parts unless the client names those it wants. */
const candidate = (modalities: ReadonlyArray<string> | undefined) => (result: Result, index: number) => ({
  content: {
    role: "model" as const,
    parts: [
      ...(modalities?.includes("TEXT") === false ? [] : [{ text: result.revisedPrompt }]),
      ...(modalities?.includes("IMAGE") === false ? [] : [{
        inlineData: { mimeType: "image/png", data: Buffer.from(result.bytes).toString("base64") }
      }])
    ]
  },
  finishReason: "STOP",
  index,
  safetyRatings: []
})

/** The answer is one piece: a picture cannot be shown in parts. */
export const content = (tools: EditTools): Perform =>
  Effect.fnUntraced(function*(call, sink) {
    const request = yield* decode(call)
    const picture = yield* pictureOf(request)
    const results = yield* picture.images.length > 0 ? edit(picture, tools) : generate(picture, tools.painter)
    const tokenizer = yield* loadTokenizer
    const usage: Usage = {
      inputTokens: yield* tokenizer.countAll([picture.prompt]),
      outputTokens: yield* tokenizer.countAll(results.map(({ revisedPrompt }) => revisedPrompt))
    }
    const answer: GenerateContentAnswer = {
      candidates: results.map(candidate(request.generationConfig?.responseModalities ?? undefined)),
      usageMetadata: toUsageMetadata(usage),
      modelVersion: call.model,
      responseId: randomUUID()
    }
    const body = JSON.stringify(answer)
    const streams = call.operation.name === streamGenerateContent.name
    sink.start({
      status: 200,
      contentType: streams ? "text/event-stream" : "application/json",
      headers: {}
    })
    sink.write(utf8.encode(streams ? `data: ${body}\n\n` : body))
    return usage
  })
