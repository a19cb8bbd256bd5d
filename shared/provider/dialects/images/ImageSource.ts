/** Supplies pictures in requests as bytes, or as a URL for the provider. */
import { Effect } from "effect"
import { InvalidRequest } from "../../../contract/JobError.ts"
import type { GuardedFetch } from "../../transport/GuardedFetch.ts"
import { bytesIn, isDataUrl, isFile } from "../../call/Base64File.ts"
import { mediaTypeOf, pictureKind } from "../../call/PictureKind.ts"

export interface ImageSource {
  /** An http(s) URL, a data URL or base64; or the bytes of a file. */
  readonly content: string | File
  readonly param: string
}

export const invalidImage = ({ param }: ImageSource, what: string) => InvalidRequest.at(param, what, "invalid_image")

const isUrl = (content: string): boolean => /^https?:/i.test(content)

const decode = Effect.fnUntraced(function*(source: ImageSource): Effect.fn.Return<Uint8Array, InvalidRequest> {
  const { content } = source
  if (typeof content !== "string") return new Uint8Array(yield* Effect.promise(() => content.arrayBuffer()))
  return isFile(content)
    ? bytesIn(content)
    : yield* invalidImage(source, "must be an http(s) URL, a data URL or base64")
})

/** The bytes of a picture, never empty. Fetches URLs. */
export const bytesOf = Effect.fnUntraced(function*(
  source: ImageSource,
  guard: GuardedFetch["Service"]
): Effect.fn.Return<Uint8Array, InvalidRequest> {
  const { content } = source
  const { bytes } = typeof content === "string" && isUrl(content)
    ? yield* Effect.mapError(guard.fetch(content), ({ message }) => invalidImage(source, message))
    : { bytes: yield* decode(source) }
  return bytes.length > 0 ? bytes : yield* invalidImage(source, "must not be empty")
})

/** The bytes and the format of a picture. */
export const fileOf = Effect.fnUntraced(function*(source: ImageSource, guard: GuardedFetch["Service"]) {
  return yield* withKind(source, yield* bytesOf(source, guard))
})

const withKind = Effect.fnUntraced(function*(source: ImageSource, bytes: Uint8Array) {
  const kind = pictureKind(bytes)
  return kind === undefined ? yield* invalidImage(source, "must be a PNG, JPEG or WebP image") : { bytes, kind }
})

/** The client's URL, or a data URL, for providers that fetch URLs. */
export const urlOf = Effect.fnUntraced(function*(source: ImageSource): Effect.fn.Return<string, InvalidRequest> {
  const { content } = source
  if (typeof content === "string" && (isUrl(content) || isDataUrl(content))) return content
  const { bytes, kind } = yield* withKind(source, yield* decode(source))
  return `data:${mediaTypeOf(kind)};base64,${Buffer.from(bytes).toString("base64")}`
})
