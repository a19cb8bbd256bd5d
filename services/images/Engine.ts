/** Offers the built-in painter of placeholders and a few picture operations to the `local` protocol. */
import { Effect, Layer } from "effect"
import * as ExactJson from "../../shared/bounds/ExactJson.ts"
import { generateContent, streamGenerateContent } from "../../shared/contract/operations/GenerateContent.ts"
import { InvalidRequest } from "../../shared/contract/JobError.ts"
import { describe, writeMachineMark, writePlaceholderMark } from "../../shared/painter/Painting.ts"
import { GuardedFetch } from "../../shared/provider/transport/GuardedFetch.ts"
import type { ImageModel, Picture } from "../../shared/provider/dialects/images/ImageModel.ts"
import type { ImageRequest } from "../../shared/provider/dialects/images/ImageRequest.ts"
import * as Images from "../../shared/provider/dialects/images/Images.ts"
import { LocalEngines } from "../../shared/provider/protocols/local/Local.ts"
import { loadTokenizer } from "../../shared/text/Tokens.ts"
import { ResultStore } from "../../shared/provider/call/ResultStore.ts"
import { edit, unusedIn } from "./Edit.ts"
import { encode, paint, toPixels } from "./Pixels.ts"

/** The longest side that the engine paints, in pixels. */
const longestPainted = 2048

/** Operations with token usage in their answers. */
const countsTokens: ReadonlyArray<string> = [generateContent.name, streamGenerateContent.name]

/** The seed of a picture: each has its own, whatever the size of the request's. */
const seedOf = (seed: ImageRequest["seed"], index: number): number =>
  Number(((ExactJson.toBigInt(seed ?? 0) ?? 0n) + BigInt(index)) % 2n ** 53n)

/** Paints the pictures of a request, each from its own seed. */
const generate = Effect.fnUntraced(function*(request: ImageRequest) {
  const { n, negativePrompt = "", prompt, seed, size = { width: 1024, height: 1024 }, watermark } = request
  const revisedPrompt = `${describe({ prompt, negativePrompt })}.`
  return yield* Effect.forEach(
    Array.from({ length: n }, (_, index) => seedOf(seed, index)),
    Effect.fnUntraced(function*(seed) {
      const canvas = yield* paint({ prompt, negativePrompt, ...size, seed })
      writePlaceholderMark(canvas)
      if (watermark === true) writeMachineMark(canvas)
      return { content: yield* encode(toPixels(canvas), request), revisedPrompt }
    }),
    // one picture is painted while others are encoded
    { concurrency: 4 }
  )
})

const model = (guard: GuardedFetch["Service"]): ImageModel =>
  Effect.fnUntraced(function*({ operation }, request) {
    const { extend, format, images, pathOf, prompt, quality, size } = request
    if (size !== undefined && Math.max(size.width, size.height) > longestPainted) {
      const what = `must have sides of at most ${longestPainted} pixels for this model`
      return yield* InvalidRequest.at(pathOf("size"), what)
    }
    const pictures = yield* images.length > 0 ? edit(request, guard) : generate(request)
    return {
      pictures,
      usage: countsTokens.includes(operation.name) ? yield* count(prompt, pictures) : undefined,
      warnings: [
        ...(extend === true ? [pathOf("prompt_extend")] : []),
        ...(quality !== undefined && (format ?? "png") === "png" ? [pathOf("output_compression")] : []),
        ...(images.length > 0 ? unusedIn(request) : [])
      ]
    }
  })

const count = Effect.fnUntraced(function*(prompt: string, pictures: ReadonlyArray<Picture>) {
  const { countAll } = yield* loadTokenizer
  return {
    inputTokens: yield* countAll([prompt]),
    outputTokens: yield* countAll(pictures.map(({ revisedPrompt = "" }) => revisedPrompt))
  }
})

export const layer = Layer.effect(
  LocalEngines,
  Effect.gen(function*() {
    const guard = yield* GuardedFetch
    const results = yield* ResultStore
    return LocalEngines.of({ performs: Images.performs(model(guard), { guard, results }) })
  })
)
