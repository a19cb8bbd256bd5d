/** Pictures as plain pixels: loading what a client gave, and writing what it gets. */
import { Effect } from "effect"
import type { Sharp } from "sharp"
import type { Size } from "../../shared/contract/ImageGenerations.ts"
import type { InternalError, InvalidRequest } from "../../shared/contract/JobError.ts"
import * as PictureFile from "../../shared/files/PictureFile.ts"
import { sharp } from "../../shared/files/PixelFormats.ts"
import type { GuardedFetch } from "../../shared/provider/GuardedFetch.ts"
import { bytesOf, type ImageSource, unusable } from "../../shared/provider/images/ImageSource.ts"
import type { LocalRequest } from "./LocalRequest.ts"
import { ownFault } from "./OwnFault.ts"

/** Red, green, blue and opacity of each pixel, row by row. */
export interface Pixels extends Size {
  readonly data: Buffer
}

/** A picture that a client gave, and whether it came with transparency. */
export interface Loaded {
  readonly pixels: Pixels
  readonly hasAlpha: boolean
}

/** The longest side that is worked with. */
const longestSide = 4096

/** The most pixels of several pictures together: twice as many as the one has that is made of them. Each is four bytes. */
const pixelsTogether = 2 * longestSide ** 2

export const open = ({ data, height, width }: Pixels): Sharp => sharp(data, { raw: { width, height, channels: 4 } })

const decode = (pipeline: Sharp) =>
  Effect.map(
    Effect.tryPromise(() =>
      pipeline.toColourspace("srgb").ensureAlpha().raw({ depth: "uchar" }).toBuffer({ resolveWithObject: true })
    ),
    ({ data, info }): Pixels => ({ data, width: info.width, height: info.height })
  )

/** Runs a pipeline to plain pixels. */
export const take = (pipeline: Sharp): Effect.Effect<Pixels, InternalError> =>
  ownFault("a picture could not be worked on")(decode(pipeline))

/**
 * Loads a picture: PNG, JPEG, WebP, GIF (its first image), AVIF or TIFF, upright, in sRGB. One with a side longer than
 * 4096 is scaled down to that, and one of several (`among`) to its share of what they may have together. Fails with
 * `InvalidRequest` where it is none, or has more than 64 million pixels, which its header tells.
 */
export const load = Effect.fn("Pixels.load")(function*(
  source: ImageSource,
  guard: GuardedFetch["Service"],
  among = 1
): Effect.fn.Return<Loaded, InvalidRequest> {
  const bytes = yield* bytesOf(source, guard)
  const { metadata, picture } = yield* Effect.mapError(PictureFile.open(bytes), (what) => unusable(source, what))
  const upright = picture.autoOrient()
  const longer = Math.max(metadata.width, metadata.height)
  const share = Math.sqrt(pixelsTogether / among / (metadata.width * metadata.height))
  const side = Math.min(longestSide, Math.floor(longer * share))
  const fitting = longer > side ? upright.resize(side, side, { fit: "inside" }) : upright
  const pixels = yield* Effect.mapError(decode(fitting), () => unusable(source, "is damaged"))
  return { pixels, hasAlpha: metadata.hasAlpha === true }
})

/** The file of a picture, in the format that the request asks for. */
export const encode = (
  picture: Sharp,
  { format, quality }: Pick<LocalRequest, "format" | "quality">
): Effect.Effect<Uint8Array, InternalError> => {
  const written = format === "png"
    ? picture.png({ compressionLevel: 6 })
    : format === "jpeg"
    ? picture.flatten({ background: "#ffffff" }).jpeg({ quality: Math.max(1, quality) })
    : picture.webp({ quality: Math.max(1, quality) })
  return ownFault("a picture could not be written")(Effect.tryPromise(() => written.toBuffer()))
}
