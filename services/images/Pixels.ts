/** Pictures as plain pixels: loads what a client sent, paints placeholders, and encodes the answer. */
import { Effect } from "effect"
import type { Sharp } from "sharp"
import { InternalError, type InvalidRequest } from "../../shared/contract/JobError.ts"
import { decodePicture, openPicture, type Pixels } from "../../shared/pictures/InputPicture.ts"
import { sharp } from "../../shared/pictures/PixelFormats.ts"
import { Canvas } from "../../shared/painter/Canvas.ts"
import { type Painting, steps } from "../../shared/painter/Painting.ts"
import type { GuardedFetch } from "../../shared/provider/transport/GuardedFetch.ts"
import type { ImageRequest } from "../../shared/provider/dialects/images/ImageRequest.ts"
import { bytesOf, type ImageSource, invalidImage } from "../../shared/provider/dialects/images/ImageSource.ts"

/** The longest side of a picture that the engine works with. */
export const longestSide = 4096

export const open = ({ data, height, width }: Pixels): Sharp => sharp(data, { raw: { width, height, channels: 4 } })

/** Logs a failure of the engine. The client gets no details. */
const ownFault = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, InternalError> =>
  effect.pipe(
    Effect.tapError((error) => Effect.logError("a picture operation failed", error)),
    Effect.mapError(() => new InternalError())
  )

/** Runs a pipeline to plain pixels. */
export const take = (pipeline: Sharp): Effect.Effect<Pixels, InternalError> => ownFault(decodePicture(pipeline))

/** Loads a client's picture upright, in sRGB, scaled down to `longest` pixels on its longer side if larger. */
export const load = Effect.fn("Pixels.load")(function*(
  source: ImageSource,
  guard: GuardedFetch["Service"],
  longest = longestSide
): Effect.fn.Return<{ readonly pixels: Pixels; readonly hasAlpha: boolean }, InvalidRequest> {
  const bytes = yield* bytesOf(source, guard)
  const load = Effect.gen(function*() {
    const { hasAlpha, picture } = yield* openPicture(bytes)
    const scaled = picture.resize(longest, longest, { fit: "inside", withoutEnlargement: true })
    return { pixels: yield* decodePicture(scaled), hasAlpha }
  })
  return yield* Effect.mapError(load, ({ what }) => invalidImage(source, what))
})

/** Paints a placeholder. Yields to other work every few milliseconds. */
export const paint = Effect.fnUntraced(function*(painting: Painting) {
  const painted = steps(painting)
  for (;;) {
    const { done, value } = painted.next()
    if (done === true) return value
    yield* Effect.yieldNow
  }
})

export const toPixels = ({ data, height, width }: Canvas): Pixels => ({ data: Buffer.from(data.buffer), width, height })

/** A canvas over the same memory. */
export const toCanvas = ({ data, height, width }: Pixels): Canvas =>
  new Canvas(width, height, new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength))

/** The file of a picture, in the format of the request. */
export const encode = (pixels: Pixels, request: ImageRequest): Effect.Effect<Uint8Array, InternalError> => {
  const { format = "png", quality = 90 } = request
  const options = format === "png" ? { compressionLevel: 6 } : { quality: Math.max(1, quality) }
  const picture = format === "jpeg" ? open(pixels).flatten({ background: "#ffffff" }) : open(pixels)
  return ownFault(Effect.tryPromise(() => picture.toFormat(format, options).toBuffer()))
}
