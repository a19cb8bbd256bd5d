/** Data URLs and media types of pictures and files. */
import type { Media, MediaPart } from "./Conversation.ts"
import type { Losses } from "./Losses.ts"

const dataUrl = /^data:([^;,]*)(?:;[^,]*)?;base64,/i

/** Decodes data URLs. `mediaType` is empty for other URLs. */
export const fromUrl = (url: string): { readonly mediaType: string; readonly media: Media } => {
  // the data can have many megabytes: match only its head
  const [head, mediaType = ""] = dataUrl.exec(url.slice(0, 200)) ?? []
  return head === undefined
    ? { mediaType: "", media: { type: "url", url } }
    : { mediaType: mediaType.toLowerCase(), media: { type: "base64", data: url.slice(head.length) } }
}

/** A file that the request contains, in base64 or as a data URL. `byName` is its type if the data do not say it. */
export const sentFile = (
  data: string,
  { byName, name, path }: { readonly name: string | undefined; readonly byName: string; readonly path: string }
): MediaPart => {
  const { media, mediaType } = fromUrl(data)
  return {
    type: "file",
    name,
    mediaType: mediaType === "" ? byName : mediaType,
    media: media.type === "url" ? { type: "base64", data } : media,
    path
  }
}

export const toDataUrl = (mediaType: string, data: string): string =>
  `data:${mediaType === "" ? "application/octet-stream" : mediaType};base64,${data}`

const byExtension: ReadonlyMap<string, string> = new Map([
  ["csv", "text/csv"],
  ["gif", "image/gif"],
  ["html", "text/html"],
  ["jpeg", "image/jpeg"],
  ["jpg", "image/jpeg"],
  ["md", "text/markdown"],
  ["mp3", "audio/mp3"],
  ["mp4", "video/mp4"],
  ["pdf", "application/pdf"],
  ["png", "image/png"],
  ["txt", "text/plain"],
  ["wav", "audio/wav"],
  ["webp", "image/webp"]
])

/** Empty if the extension is unknown. */
export const typeOfName = (name: string): string =>
  byExtension.get(/\.([a-z0-9]+)$/i.exec(name)?.[1]?.toLowerCase() ?? "") ?? ""

/** The registered name: some clients use another one for JPEG. */
export const registeredMediaType = (mediaType: string): string => mediaType === "image/jpg" ? "image/jpeg" : mediaType

/** The content of a text file. */
export const textOf = (part: MediaPart): string | undefined => {
  if (part.media.type === "text") return part.media.text
  return part.media.type === "base64" && part.mediaType.startsWith("text/")
    ? Buffer.from(part.media.data, "base64").toString()
    : undefined
}

/** Only OpenAI's dialect has `detail`. */
export const warnOfDetail = (
  { detail = "auto", path = "" }: Extract<MediaPart, { readonly type: "image" }>,
  losses: Losses
): void => {
  if (detail !== "auto") losses.warn(`${path}.image_url.detail`)
}
