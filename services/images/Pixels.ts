/** Pictures as plain pixels: loading what a client gave, and writing what it gets. */
import { Effect } from "effect"
import type { Sharp } from "sharp"
import type { Size } from "../../shared/contract/ImageGenerations.ts"
import { InternalError, InvalidRequest } from "../../shared/contract/JobError.ts"
import { sharp } from "../../shared/files/PixelFormats.ts"
import type { GuardedFetch } from "../../shared/provider/GuardedFetch.ts"
import type { ImageRequest, ImageSource } from "./ImageRequest.ts"

/** Red, green, blue and opacity of each pixel, row by row. */
export interface Pixels extends Size {
  readonly data: Buffer
}

/** A picture that a client gave, and whether it came with transparency. */
export interface Loaded {
  readonly pixels: Pixels
  readonly hasAlpha: boolean
}

/** The most pixels that are decoded, and the longest side that is worked with. */
const maximumPixels = 64_000_000
const longestSide = 4096

export const open = ({ data, height, width }: Pixels): Sharp => sharp(data, { raw: { width, height, channels: 4 } })

/** Runs a pipeline to plain pixels. */
export const take = (pipeline: Sharp): Effect.Effect<Pixels, InternalError> =>
  Effect.tryPromise(() =>
    pipeline.toColourspace("srgb").ensureAlpha().raw({ depth: "uchar" }).toBuffer({ resolveWithObject: true })
  ).pipe(
    Effect.map(({ data, info }) => ({ data, width: info.width, height: info.height })),
    Effect.tapError((error) => Effect.logError("a picture could not be worked on", error)),
    Effect.mapError(() => new InternalError())
  )

const unusable = (param: string, what: string) =>
  new InvalidRequest({ message: `${param}: ${what}`, param, code: "invalid_image" })

const dataUrl = /^data:[^,]{0,200};base64,/i
const base64 = /^[A-Za-z0-9+/_-]+={0,2}\s*$/

const bytesOf = Effect.fnUntraced(function*({ content, param }: ImageSource, guard: GuardedFetch["Service"]) {
  if (typeof content !== "string") return new Uint8Array(yield* Effect.promise(() => content.arrayBuffer()))
  if (/^https?:/i.test(content)) {
    const { bytes } = yield* Effect.mapError(guard.fetch(content), ({ message }) => unusable(param, message))
    return bytes
  }
  const encoded = content.replace(dataUrl, "")
  if (!base64.test(encoded)) return yield* unusable(param, "Expected an http(s) URL, a data URL or base64")
  return Buffer.from(encoded, "base64")
})

/**
 * Loads a picture: PNG, JPEG, WebP, GIF (its first image), AVIF or TIFF, upright, in sRGB. One with a side longer than
 * 4096 is scaled down to that. Fails with `InvalidRequest` where it is none, or has more than 64 million pixels.
 */
export const load = Effect.fn("Pixels.load")(function*(
  source: ImageSource,
  guard: GuardedFetch["Service"]
): Effect.fn.Return<Loaded, InvalidRequest> {
  const bytes = yield* bytesOf(source, guard)
  const picture = sharp(bytes, { limitInputPixels: maximumPixels })
  const metadata = yield* Effect.tryPromise(() => picture.metadata()).pipe(
    Effect.mapError(() => unusable(source.param, "Expected a PNG, JPEG, WebP, GIF, AVIF or TIFF image"))
  )
  if (metadata.width * metadata.height > maximumPixels) {
    return yield* unusable(source.param, `Expected at most ${maximumPixels / 1_000_000} million pixels`)
  }
  const upright = picture.autoOrient()
  const fitting = Math.max(metadata.width, metadata.height) > longestSide
    ? upright.resize(longestSide, longestSide, { fit: "inside" })
    : upright
  const decoded = Effect.tryPromise(() =>
    fitting.toColourspace("srgb").ensureAlpha().raw({ depth: "uchar" }).toBuffer({ resolveWithObject: true })
  )
  const { data, info } = yield* Effect.mapError(decoded, () => unusable(source.param, "The image is damaged"))
  return { pixels: { data, width: info.width, height: info.height }, hasAlpha: metadata.hasAlpha === true }
})

/** The file of a picture, in the format that the request asks for. */
export const encode = (
  picture: Sharp,
  { format, quality }: Pick<ImageRequest, "format" | "quality">
): Effect.Effect<Uint8Array, InternalError> => {
  const written = format === "png"
    ? picture.png({ compressionLevel: 6 })
    : format === "jpeg"
    ? picture.flatten({ background: "#ffffff" }).jpeg({ quality: Math.max(1, quality) })
    : picture.webp({ quality: Math.max(1, quality) })
  return Effect.tryPromise(() => written.toBuffer()).pipe(
    Effect.tapError((error) => Effect.logError("a picture could not be written", error)),
    Effect.mapError(() => new InternalError())
  )
}
