/** Replaces URLs of pictures and files by their content, for providers that do not fetch them. */
import { Effect } from "effect"
import { InvalidRequest } from "../../../contract/JobError.ts"
import type { Fetched, GuardedFetch } from "../../transport/GuardedFetch.ts"
import { mediaTypeOf, pictureKind } from "../../call/PictureKind.ts"
import { type ContentPart, type Conversation, isMedia, type MediaPart } from "./Conversation.ts"
import type { ProviderDialect } from "./Dialect.ts"
import { typeOfName } from "./Media.ts"

/** Limits per request: concurrent fetches, files, and the total size of what they add to the request. */
const atOnce = 4
const maxFiles = 40
const maxBytes = 64 * 1024 * 1024

type NeedsInline = ProviderDialect<never>["needsInline"]

/** The URL to fetch a part from, if any. */
const neededOf = (
  part: ContentPart,
  needsInline: NeedsInline
): { readonly part: MediaPart; readonly url: string } | undefined =>
  isMedia(part) && part.media.type === "url" && needsInline(part.media.url, part)
    ? { part, url: part.media.url }
    : undefined

/** Fails with the field whose URL cannot be fetched. Fetches repeated URLs once, but each repetition adds its content again. */
export const inline = Effect.fnUntraced(function*(
  conversation: Conversation,
  needsInline: NeedsInline,
  guard: Pick<GuardedFetch["Service"], "fetch">
): Effect.fn.Return<Conversation, InvalidRequest> {
  const { turns } = conversation
  const needed = new Map<string, { readonly part: MediaPart; times: number }>()
  for (const { content } of turns) {
    for (const each of content) {
      const { part, url } = neededOf(each, needsInline) ?? {}
      if (part === undefined || url === undefined) continue
      const known = needed.get(url)
      if (known === undefined) needed.set(url, { part, times: 1 })
      else known.times++
    }
  }
  if (needed.size === 0) return conversation
  const files = new Map<string, Fetched>()
  let bytes = 0
  yield* Effect.forEach([...needed], ([url, { part: { path = "" }, times }], index) => {
    if (index >= maxFiles) {
      return refused(path, `exceeds the limit of ${maxFiles} files to fetch per request`)
    }
    return guard.fetch(url).pipe(
      Effect.catch((error) => refused(path, error.message)),
      Effect.flatMap((file) => {
        files.set(url, file)
        bytes += file.bytes.length * times
        return bytes > maxBytes
          ? refused(path, `exceeds the limit of ${maxBytes / 1024 / 1024} MiB for all fetched files`)
          : Effect.void
      })
    )
  }, { concurrency: atOnce, discard: true })
  return {
    ...conversation,
    turns: turns.map((turn) => ({
      ...turn,
      content: turn.content.map((part) => {
        const at = neededOf(part, needsInline)
        const file = at === undefined ? undefined : files.get(at.url)
        return at === undefined || file === undefined ? part : held(at.part, file)
      })
    }))
  }
})

const refused = (param: string, why: string): Effect.Effect<never, InvalidRequest> =>
  Effect.fail(InvalidRequest.at(param, why, "invalid_url"))

const held = (part: MediaPart, { bytes, mediaType }: Fetched): MediaPart => ({
  ...part,
  mediaType: typeOf(part, bytes, mediaType.split(";")[0]?.trim().toLowerCase() ?? ""),
  media: { type: "base64", data: Buffer.from(bytes).toString("base64") }
})

/** Media types that say nothing about the file. */
const generic: ReadonlySet<string> = new Set(["", "application/octet-stream", "binary/octet-stream"])

/** From the bytes of a picture, otherwise from the server, the client or the URL. */
const typeOf = ({ media, mediaType, type }: MediaPart, bytes: Uint8Array, said: string): string => {
  const kind = type === "image" ? pictureKind(bytes) : undefined
  if (kind !== undefined) return mediaTypeOf(kind)
  if (!generic.has(said)) return said
  const given = mediaType.endsWith("*") ? "" : mediaType
  return given || (media.type === "url" ? typeOfName(media.url.replace(/[?#].*$/s, "")) : "") || said
}
