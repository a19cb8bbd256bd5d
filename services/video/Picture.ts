/** The picture that a video begins with: fetched or decoded, and cut to the shape of the video with room to move in. */
import { Effect } from "effect"
import { sharp } from "../../shared/files/PixelFormats.ts"
import { GuardedFetch } from "../../shared/provider/GuardedFetch.ts"
import { bytesOf, unusable } from "../../shared/provider/images/ImageSource.ts"
import { type Picture, room } from "./Camera.ts"

/** Beyond this many pixels a picture is refused before it is decoded. */
const maximumPixels = 64_000_000

const formats = ["png", "jpeg", "webp", "gif", "avif", "heif", "tiff"]

/** Loads the picture that a request names, filling a frame of this size and the room around it. */
export const load = Effect.fn("Picture.load")(function*(image: string, width: number, height: number) {
  const given = { content: image, param: "image" }
  const bytes = yield* bytesOf(given, yield* GuardedFetch)
  const source = sharp(bytes, { limitInputPixels: maximumPixels })
  const metadata = yield* Effect.tryPromise(() => source.metadata()).pipe(
    Effect.filterOrFail(({ format }) => formats.includes(format)),
    Effect.mapError(() => unusable(given, "must be a PNG, JPEG, WebP, GIF, AVIF or TIFF image"))
  )
  if (metadata.width * metadata.height > maximumPixels) {
    return yield* unusable(given, `must have at most ${maximumPixels / 1_000_000} million pixels`)
  }
  return yield* Effect.tryPromise({
    try: async (): Promise<Picture> => {
      const { data, info } = await source
        .autoOrient()
        .resize(Math.ceil(width * room), Math.ceil(height * room), { fit: "cover" })
        .flatten({ background: "#ffffff" })
        .ensureAlpha()
        .raw()
        .toBuffer({ resolveWithObject: true })
      return { width: info.width, height: info.height, pixels: new Uint8Array(data) }
    },
    catch: () => unusable(given, "is damaged")
  })
})
