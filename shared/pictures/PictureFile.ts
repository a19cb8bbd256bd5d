/** Opens a client's picture file, unless its header states more pixels than fit into memory. */
import { Effect } from "effect"
import type { Metadata, Sharp } from "sharp"
import { sharp } from "./PixelFormats.ts"

/** Each pixel takes four bytes. */
const maximumPixels = 64_000_000

export interface PictureFile {
  /** Decoded only when its pixels are read. */
  readonly picture: Sharp
  readonly metadata: Metadata
}

const grouped = (count: number): string => count.toLocaleString("en-US")

/** Reads only the header. Fails with the problem of the file, worded to follow the name of its field. */
export const open = (bytes: Uint8Array): Effect.Effect<PictureFile, string> =>
  // no limit here: sharp would refuse to read the header of a large picture, and the error would blame its format
  Effect.tryPromise(() => sharp(bytes, { limitInputPixels: false }).metadata()).pipe(
    Effect.mapError(() => "must be a PNG, JPEG, WebP, GIF, AVIF or TIFF image"),
    Effect.flatMap((metadata) => {
      const { height, width } = metadata
      return width * height > maximumPixels
        ? Effect.fail(
          `must have at most ${grouped(maximumPixels)} pixels: ` +
            `${grouped(width)} × ${grouped(height)} are ${grouped(width * height)}`
        )
        : Effect.succeed({ picture: sharp(bytes, { limitInputPixels: maximumPixels }), metadata })
    })
  )
