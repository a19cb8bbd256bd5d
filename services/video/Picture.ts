/** The picture that a video begins with: fetched or decoded, and cut to the shape of the video with room to move in. */
import { Effect } from "effect"
import { sharp } from "../../shared/files/PixelFormats.ts"
import { InvalidRequest } from "../../shared/contract/JobError.ts"
import { GuardedFetch } from "../../shared/provider/GuardedFetch.ts"
import { type Picture, room } from "./Camera.ts"

/** Beyond this many pixels a picture is refused before it is decoded. */
const maximumPixels = 64_000_000

const formats = ["png", "jpeg", "webp", "gif", "avif", "heif", "tiff"]

const invalid = (message: string) =>
  new InvalidRequest({ message: `image: ${message}`, param: "image", code: "invalid_image" })

const dataUrl = /^data:image\/[\w.+-]+(?:;[\w=.+-]+)*;base64,/i
const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/

const bytesOf = Effect.fnUntraced(function*(image: string) {
  if (/^https?:/i.test(image)) {
    const { fetch } = yield* GuardedFetch
    const { bytes } = yield* Effect.mapError(fetch(image), ({ message }) => invalid(message))
    return bytes
  }
  const encoded = image.replace(dataUrl, "").replaceAll(/\s/g, "")
  if (!base64.test(encoded)) return yield* invalid("Expected an http(s) URL, a data URL of an image, or base64")
  return new Uint8Array(Buffer.from(encoded, "base64"))
})

/** Loads the picture that a request names, filling a frame of this size and the room around it. */
export const load = Effect.fn("Picture.load")(function*(image: string, width: number, height: number) {
  const bytes = yield* bytesOf(image)
  return yield* Effect.tryPromise({
    try: async (): Promise<Picture> => {
      const source = sharp(bytes, { limitInputPixels: maximumPixels })
      const { format } = await source.metadata()
      if (!formats.includes(format)) throw new Error("an unknown format")
      const { data, info } = await source
        .autoOrient()
        .resize(Math.ceil(width * room), Math.ceil(height * room), { fit: "cover" })
        .flatten({ background: "#ffffff" })
        .ensureAlpha()
        .raw()
        .toBuffer({ resolveWithObject: true })
      return { width: info.width, height: info.height, pixels: new Uint8Array(data) }
    },
    catch: () => invalid("Expected a PNG, JPEG, WebP, GIF, AVIF or TIFF image")
  })
})
