/** Opens pictures from clients. Reads the header first, so that a picture that is too large is never decoded. */
import { Effect, Schema } from "effect"
import type { Sharp } from "sharp"
import * as PictureFile from "./PictureFile.ts"

/** The file is not a picture, has an unsupported format, is damaged or too large. */
export class UnusablePicture extends Schema.TaggedError<UnusablePicture>()("UnusablePicture", {
  /** The problem, worded to follow the name of the field. */
  what: Schema.String
}) {}

export interface InputPicture {
  /** The picture, turned upright. */
  readonly picture: Sharp
  readonly width: number
  readonly height: number
  readonly hasAlpha: boolean
}

/** Opens a PNG, JPEG, WebP, GIF (its first image), AVIF or TIFF. Fails if it has more than 64 million pixels. */
export const openPicture = (bytes: Uint8Array): Effect.Effect<InputPicture, UnusablePicture> =>
  PictureFile.open(bytes).pipe(
    Effect.mapError((what) => new UnusablePicture({ what })),
    Effect.map(({ metadata: { autoOrient, hasAlpha }, picture }) => ({
      picture: picture.autoOrient(),
      width: autoOrient.width,
      height: autoOrient.height,
      hasAlpha
    }))
  )

/** Runs a pipeline on a client's picture and returns its pixels. */
export const decodePicture = (pipeline: Sharp): Effect.Effect<Pixels, UnusablePicture> =>
  Effect.tryPromise({
    try: async () => {
      const raw = pipeline.toColourspace("srgb").ensureAlpha().raw({ depth: "uchar" })
      const { data, info } = await raw.toBuffer({ resolveWithObject: true })
      return { data, width: info.width, height: info.height }
    },
    catch: () => new UnusablePicture({ what: "is damaged" })
  })

/** Red, green, blue and opacity of each pixel, row by row. */
export interface Pixels {
  readonly data: Buffer
  readonly width: number
  readonly height: number
}
