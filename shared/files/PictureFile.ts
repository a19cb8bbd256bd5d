/** Opens a picture file from a client if its header promises no more pixels than a process can hold. */
import { Effect } from "effect"
import type { Metadata, Sharp } from "sharp"
import { sharp } from "./PixelFormats.ts"

/** The most pixels that are decoded: four bytes each. */
const maximumPixels = 64_000_000

export interface PictureFile {
  /** Decodes nothing until it is asked for pixels. */
  readonly picture: Sharp
  readonly metadata: Metadata
}

const grouped = (count: number): string => count.toLocaleString("en-US")

/** Reads the header only. Fails with what is wrong with the file, worded to follow the name of its field. */
export const open = (bytes: Uint8Array): Effect.Effect<PictureFile, string> =>
  // a bound here would make the header of a large picture unreadable, and the error a lie about its format
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
