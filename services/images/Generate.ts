/** Paints placeholders from a prompt. */
import { Effect } from "effect"
import type { Size } from "../../shared/contract/operations/ImageGenerations.ts"
import type { InternalError } from "../../shared/contract/JobError.ts"
import type { Pixels } from "../../shared/files/InputPicture.ts"
import { describe, steps } from "../../shared/painter/Painting.ts"
import type { Picture } from "../../shared/provider/dialects/images/ImageModel.ts"
import type { LocalRequest } from "./LocalRequest.ts"
import { encode } from "./Pixels.ts"

const usualSize: Size = { width: 1024, height: 1024 }

/** Paints the picture of a request, number `index` of several. Other work runs every few milliseconds. */
export const paint = Effect.fnUntraced(function*(
  { negativePrompt, prompt, seed }: LocalRequest,
  { height, width }: Size,
  index: number,
  watermark: boolean
): Effect.fn.Return<Pixels> {
  const painted = steps({ prompt, negativePrompt, width, height, seed: seed + index, watermark }, 0)
  for (;;) {
    const { done, value } = painted.next()
    if (done === true) return { data: Buffer.from(value.data.buffer), width, height }
    yield* Effect.yieldNow
  }
})

/** As many pictures as the request asks for, each from a seed of its own. */
export const generate = Effect.fn("Generate.generate")(
  function*(request: LocalRequest): Effect.fn.Return<ReadonlyArray<Picture>, InternalError> {
    const size = request.size ?? usualSize
    const revisedPrompt = `${describe({ ...request, ...size })}.`
    return yield* Effect.forEach(
      Array.from({ length: request.n }, (_, index) => index),
      (index) =>
        paint(request, size, index, request.watermark).pipe(
          Effect.flatMap((pixels) => encode(pixels, request)),
          Effect.map((content): Picture => ({ content, revisedPrompt }))
        ),
      // one is painted while others are encoded
      { concurrency: 4 }
    )
  }
)
