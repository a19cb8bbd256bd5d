/** Pictures that clients give, in whichever way they do: as bytes where a provider needs those. */
import { Effect } from "effect"
import { InvalidRequest } from "../../../contract/JobError.ts"
import type { GuardedFetch } from "../../transport/GuardedFetch.ts"
import { mediaTypeOf, pictureKind } from "../../call/PictureKind.ts"

/** A picture as the client gave it, and the path of the field in which it did. */
export interface ImageSource {
  /** An http(s) URL, a data URL or base64; or the bytes of a file. */
  readonly content: string | File
  readonly param: string
}

const dataUrl = /^data:[^,]{0,200};base64,/i
const base64 = /^[A-Za-z0-9+/_-]+={0,2}\s*$/

/** What the error says of a picture that cannot be used. */
export const unusable = ({ param }: ImageSource, what: string) => InvalidRequest.at(param, what, "invalid_image")

const isUrl = (content: string): boolean => /^https?:/i.test(content)

const given = Effect.fnUntraced(function*(
  source: ImageSource
): Effect.fn.Return<Uint8Array, InvalidRequest> {
  const { content } = source
  if (typeof content !== "string") return new Uint8Array(yield* Effect.promise(() => content.arrayBuffer()))
  const encoded = content.replace(dataUrl, "")
  if (!base64.test(encoded)) return yield* unusable(source, "must be an http(s) URL, a data URL or base64")
  return Buffer.from(encoded, "base64")
})

const fetched = (source: ImageSource, url: string, guard: GuardedFetch["Service"]) =>
  Effect.mapBoth(guard.fetch(url), {
    onSuccess: ({ bytes }) => bytes,
    onFailure: ({ message }) => unusable(source, message)
  })

/** The bytes of the file, at least one, fetched where the client gave a URL. */
export const bytesOf = Effect.fnUntraced(function*(
  source: ImageSource,
  guard: GuardedFetch["Service"]
): Effect.fn.Return<Uint8Array, InvalidRequest> {
  const { content } = source
  const bytes = typeof content === "string" && isUrl(content)
    ? yield* fetched(source, content, guard)
    : yield* given(source)
  return bytes.length > 0 ? bytes : yield* unusable(source, "must not be empty")
})

/** The picture for a provider that has to be told what it is. One that fetches URLs is not given those of clients either. */
export const fileOf = Effect.fnUntraced(function*(source: ImageSource, guard: GuardedFetch["Service"]) {
  const bytes = yield* bytesOf(source, guard)
  const kind = pictureKind(bytes)
  if (kind === undefined) return yield* unusable(source, "must be a PNG, JPEG or WebP image")
  return { bytes, kind }
})

/** The picture for a provider that fetches URLs itself: a URL as it is, anything else as a data URL. */
export const urlOf = Effect.fnUntraced(function*(source: ImageSource): Effect.fn.Return<string, InvalidRequest> {
  const { content } = source
  if (typeof content === "string" && (isUrl(content) || dataUrl.test(content))) return content
  const bytes = yield* given(source)
  const kind = pictureKind(bytes)
  if (kind === undefined) return yield* unusable(source, "must be a PNG, JPEG or WebP image")
  return `data:${mediaTypeOf(kind)};base64,${Buffer.from(bytes).toString("base64")}`
})
