/** The picture that a video begins with: fetched or decoded, and cut to the shape of the video with room to move in. */
import { Effect } from "effect"
import * as PictureFile from "../../shared/files/PictureFile.ts"
import { GuardedFetch } from "../../shared/provider/GuardedFetch.ts"
import { bytesOf, unusable } from "../../shared/provider/images/ImageSource.ts"
import { type Picture, room } from "./Camera.ts"

/** Loads the picture that a request names, filling a frame of this size and the room around it. */
export const load = Effect.fn("Picture.load")(function*(image: string, width: number, height: number) {
  const given = { content: image, param: "image" }
  const bytes = yield* bytesOf(given, yield* GuardedFetch)
  const { picture } = yield* Effect.mapError(PictureFile.open(bytes), (what) => unusable(given, what))
  return yield* Effect.tryPromise({
    try: async (): Promise<Picture> => {
      const { data, info } = await picture
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
