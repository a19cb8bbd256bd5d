/**
 * The schema of a picture in a request. Checks the picture without decoding it, because ingress has no decoders, which would bring
 * native code. The first bytes show that it is a picture; whether the rest is intact, only the worker or the provider can tell.
 */
import { Schema } from "effect"

/** The first bytes of the formats that some provider accepts, as Latin-1. */
const signatures: ReadonlyArray<RegExp> = [
  /^\x89PNG\r\n[^]{6}IHDR/,
  /^\xff\xd8\xff/,
  /^RIFF[^]{4}WEBP/,
  /^GIF8[79]a/,
  /^BM/,
  /^(?:II\*\0|MM\0\*)/,
  // AVIF and HEIC
  /^[^]{4}ftyp(?:avif|avis|heic|heix|mif1|msf1)/
]

/** Enough base64 characters for every signature. */
const headCharacters = 32

const dataUrlHead = /^data:([^,]{0,200}),/i
const pictureType = /^image\/[^;]+(?:;[^;]+)*;base64$/i

/** The problem, worded to follow the name of the field. */
const problemOf = (text: string): string | undefined => {
  if (/^https?:/i.test(text)) return URL.canParse(text) ? undefined : "must be a valid URL"
  const head = dataUrlHead.exec(text)
  if (head !== null && !pictureType.test(head[1] ?? "")) return "must be a data URL of a picture in base64"
  const start = head?.[0].length ?? 0
  // searches for a wrong character, because matching the whole text would backtrack
  const foreign = text.slice(start).search(/[^A-Za-z0-9+/_-]/)
  const isBase64 = foreign !== 0 &&
    (foreign < 0 || /^={0,2}\s*$/.test(text.slice(start + foreign, start + foreign + 64)))
  if (!isBase64) return "must be an http(s) URL, a data URL or base64"
  const bytes = Buffer.from(text.slice(start, start + headCharacters), "base64").toString("latin1")
  return signatures.some((signature) => signature.test(bytes))
    ? undefined
    : "must be a picture, such as PNG, JPEG or WebP; this is another kind of file"
}

/** An http(s) URL, a data URL or base64. */
export const PictureInput = Schema.NonEmptyString.check(
  Schema.makeFilter((text) => text === "" ? undefined : problemOf(text))
)
