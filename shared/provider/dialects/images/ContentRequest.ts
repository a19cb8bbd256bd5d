/** Decodes generateContent requests for pictures, from a prompt or from pictures among the parts. */
import { Effect } from "effect"
import { inEitherSpelling } from "../../../contract/http/FieldSpelling.ts"
import { GenerateContentRequest, type imageSizes } from "../../../contract/operations/GenerateContent.ts"
import { maximumImages } from "../../../contract/operations/ImageEdits.ts"
import { maximumAnswers, type Size } from "../../../contract/operations/ImageGenerations.ts"
import { InvalidRequest } from "../../../contract/JobError.ts"
import { reader } from "../../call/RequestBody.ts"
import type { Call } from "../../call/Protocol.ts"
import { lossesOf } from "../conversation/ClientRequest.ts"
import { carried, inBothSpellings } from "../conversation/Losses.ts"
import { type ImageRequest, type ImageSetting, withExactSeed } from "./ImageRequest.ts"
import type { ImageSource } from "./ImageSource.ts"

/** The kinds of parts in the answer: both unless the client selects some. */
export interface WantedParts {
  readonly text: boolean
  readonly image: boolean
}

const read = reader(inEitherSpelling(GenerateContentRequest))

/** Models of pictures take a prompt, and no conversation. */
const fates = inBothSpellings({
  model: "carried",
  contents: [{
    role: "carried",
    parts: [{ text: "carried", inlineData: carried("data", "mimeType"), fileData: carried("fileUri", "mimeType") }]
  }],
  generationConfig: {
    ...carried("candidateCount", "seed", "responseModalities"),
    imageConfig: carried("aspectRatio", "imageSize")
  }
})

/** The longer side of a picture, in pixels. */
const sides: Record<typeof imageSizes[number], number> = { "512": 512, "1K": 1_024, "2K": 2_048, "4K": 4_096 }

type Config = NonNullable<GenerateContentRequest["generationConfig"]>

/** An edited picture keeps its shape unless the client sets a ratio. */
const sizeOf = (
  { aspectRatio, imageSize }: NonNullable<Config["imageConfig"]>,
  isChange: boolean
): Size | undefined => {
  if (typeof aspectRatio !== "string" && (isChange || typeof imageSize !== "string")) return undefined
  const side = sides[imageSize ?? "1K"]
  const [width = 1, height = 1] = (aspectRatio ?? "1:1").split(":").map(Number)
  const longer = Math.max(width, height)
  return { width: Math.round(side * width / longer), height: Math.round(side * height / longer) }
}

const paths: Partial<Record<ImageSetting, string>> = { n: "candidateCount", size: "imageConfig.imageSize" }

export const readContent = Effect.fnUntraced(function*(call: Call) {
  const { json, request } = yield* read(call)
  const losses = lossesOf(call, {}, "ordinary")
  losses.recordUnmapped(json, fates)
  for (const [index, { role }] of request.contents.entries()) {
    if (role === "model" || role === "system") {
      losses.warn(`contents[${index}].role`, "is part of the prompt like any other")
    }
  }
  if (request.generationConfig?.responseModalities?.includes("AUDIO") === true) {
    losses.warn("generationConfig.responseModalities", "are TEXT and IMAGE for this model")
  }
  yield* losses.failIfRefused
  const config = request.generationConfig
  const parts = request.contents.flatMap(({ parts }, content) => parts.map((part, at) => ({ content, at, part })))
  const images = parts.flatMap(({ at, content, part }): ReadonlyArray<ImageSource> => {
    const where = `contents[${content}].parts[${at}]`
    if (part.inlineData) return [{ content: part.inlineData.data, param: `${where}.inlineData.data` }]
    return part.fileData ? [{ content: part.fileData.fileUri, param: `${where}.fileData.fileUri` }] : []
  })
  // bounded as in the other operations: each picture takes memory, and each answer costs
  if (images.length > maximumImages) {
    return yield* InvalidRequest.at("contents", `must hold at most ${maximumImages} images for this model`)
  }
  const n = config?.candidateCount ?? 1
  if (n > maximumAnswers) {
    return yield* InvalidRequest.at(
      "generationConfig.candidateCount",
      `must be at most ${maximumAnswers} for this model`
    )
  }
  const picture: ImageRequest = {
    promptParam: "contents",
    prompt: parts.flatMap(({ part }) => typeof part.text === "string" ? [part.text] : []).join("\n"),
    images,
    n,
    size: sizeOf(config?.imageConfig ?? {}, images.length > 0),
    seed: config?.seed ?? undefined,
    answerAs: "b64_json",
    extra: {},
    lost: losses.warnings,
    lostInMessages: [],
    pathOf: (setting) => `generationConfig.${paths[setting] ?? setting}`
  }
  const modalities = config?.responseModalities ?? []
  const isWanted = (kind: "TEXT" | "IMAGE") => modalities.length === 0 || modalities.includes(kind)
  const wants: WantedParts = { text: isWanted("TEXT"), image: isWanted("IMAGE") }
  // otherwise the provider would be paid for a picture that the answer leaves out
  if (!wants.text && !wants.image) {
    return yield* InvalidRequest.at("generationConfig.responseModalities", "must contain TEXT or IMAGE for this model")
  }
  return { picture: withExactSeed(picture, call), wants }
})
