/** Pictures as plain pixels: loads what a client sent, and encodes what it gets. */
import { Effect } from "effect"
import type { Sharp } from "sharp"
import { InternalError, type InvalidRequest } from "../../shared/contract/JobError.ts"
import { decodePicture, openPicture, type Pixels } from "../../shared/files/InputPicture.ts"
import { sharp } from "../../shared/files/PixelFormats.ts"
import type { GuardedFetch } from "../../shared/provider/transport/GuardedFetch.ts"
import { bytesOf, type ImageSource, unusable } from "../../shared/provider/dialects/images/ImageSource.ts"
import type { LocalRequest } from "./LocalRequest.ts"

/** A picture that a client sent, and whether it came with transparency. */
export interface Loaded {
  readonly pixels: Pixels
  readonly hasAlpha: boolean
}

/** The longest side that is worked with. */
const longestSide = 4096

/** The most pixels of several pictures together: twice as many as the one has that is made of them. Each is four bytes. */
const pixelsTogether = 2 * longestSide ** 2

export const open = ({ data, height, width }: Pixels): Sharp => sharp(data, { raw: { width, height, channels: 4 } })

/** Logs a failure that is not the client's. The client learns only that there was one. */
const ownFault = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, InternalError> =>
  effect.pipe(
    Effect.tapError((error) => Effect.logError("a picture could not be worked on", error)),
    Effect.mapError(() => new InternalError())
  )

/** Runs a pipeline to plain pixels. */
export const take = (pipeline: Sharp): Effect.Effect<Pixels, InternalError> => ownFault(decodePicture(pipeline))

/**
 * Loads a picture upright, in sRGB. One with a side longer than 4096 is scaled down to that, and one of several
 * (`among`) to its share of what they may have together.
 */
export const load = Effect.fn("Pixels.load")(function*(
  source: ImageSource,
  guard: GuardedFetch["Service"],
  among = 1
): Effect.fn.Return<Loaded, InvalidRequest> {
  const refuse = ({ what }: { readonly what: string }) => unusable(source, what)
  const input = yield* openPicture(yield* bytesOf(source, guard)).pipe(Effect.mapError(refuse))
  const { hasAlpha, height, picture, width } = input
  const longer = Math.max(width, height)
  const share = Math.sqrt(pixelsTogether / among / (width * height))
  const side = Math.min(longestSide, Math.floor(longer * share))
  const fitting = longer > side ? picture.resize(side, side, { fit: "inside" }) : picture
  return { pixels: yield* Effect.mapError(decodePicture(fitting), refuse), hasAlpha }
})

/** The file of a picture, in the format that the request asks for. */
export const encode = (
  pixels: Pixels,
  { format, quality }: Pick<LocalRequest, "format" | "quality">
): Effect.Effect<Uint8Array, InternalError> => {
  const picture = open(pixels)
  const file = format === "png"
    ? picture.png({ compressionLevel: 6 })
    : format === "jpeg"
    ? picture.flatten({ background: "#ffffff" }).jpeg({ quality: Math.max(1, quality) })
    : picture.webp({ quality: Math.max(1, quality) })
  return ownFault(Effect.tryPromise(() => file.toBuffer()))
}
