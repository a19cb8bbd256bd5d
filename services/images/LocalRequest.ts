/** A request for pictures as the built-in engine takes it: with its own defaults, and not larger than it paints. */
import { Effect } from "effect"
import type { Size } from "../../shared/contract/ImageGenerations.ts"
import { InvalidRequest } from "../../shared/contract/JobError.ts"
import type { ImageRequest } from "../../shared/provider/images/ImageRequest.ts"
import type { ImageSource } from "../../shared/provider/images/ImageSource.ts"
import type { PictureKind } from "../../shared/provider/images/PictureKind.ts"

export interface LocalRequest {
  readonly prompt: string
  readonly promptParam: string
  readonly images: ReadonlyArray<ImageSource>
  readonly mask: ImageSource | undefined
  readonly n: number
  /** `undefined` where the client leaves it to the engine. */
  readonly size: Size | undefined
  readonly seed: number
  readonly negativePrompt: string
  readonly watermark: boolean
  readonly format: PictureKind
  /** Percent. */
  readonly quality: number
}

/** What the built-in engine paints, in pixels: larger sizes are for other providers. */
const largestSide = 2048

const defaultQuality = 90

export const settle = (request: ImageRequest): Effect.Effect<LocalRequest, InvalidRequest> => {
  const { images, mask, n, prompt, promptParam, size } = request
  if (size !== undefined && Math.max(size.width, size.height) > largestSide) {
    const what = `must have sides of at most ${largestSide} pixels for this model`
    return Effect.fail(InvalidRequest.at(request.pathOf("size"), what))
  }
  return Effect.succeed({
    prompt,
    promptParam,
    images,
    mask,
    n,
    size,
    seed: request.seed ?? 0,
    negativePrompt: request.negativePrompt ?? "",
    watermark: request.watermark ?? false,
    format: request.format ?? "png",
    quality: request.quality ?? defaultQuality
  })
}
