/** A request for pictures as the built-in engine takes it: with defaults, and not larger than it paints. */
import { Effect } from "effect"
import { InvalidRequest } from "../../shared/contract/JobError.ts"
import type { ImageRequest } from "../../shared/provider/dialects/images/ImageRequest.ts"

/** What the built-in engine paints, in pixels. */
const largestSide = 2048

export type LocalRequest = Effect.Success<ReturnType<typeof settle>>

export const settle = Effect.fnUntraced(function*(request: ImageRequest) {
  const { format = "png", negativePrompt = "", quality = 90, seed = 0, size, watermark = false } = request
  if (size !== undefined && Math.max(size.width, size.height) > largestSide) {
    const what = `must have sides of at most ${largestSide} pixels for this model`
    return yield* InvalidRequest.at(request.pathOf("size"), what)
  }
  return { ...request, format, negativePrompt, quality, seed, watermark }
})
