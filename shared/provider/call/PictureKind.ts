/** Determines the kind of a picture from its first bytes, because what servers and clients declare may be wrong. */

/** The kinds that the gateway accepts and returns. */
export type PictureKind = "png" | "jpeg" | "webp"

const startsWith = (bytes: Uint8Array, text: string, at = 0): boolean =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1", at, at + text.length) === text

/** The kind of a picture; `undefined` for anything else. */
export const pictureKind = (bytes: Uint8Array): PictureKind | undefined => {
  if (startsWith(bytes, "\x89PNG\r\n\x1a\n")) return "png"
  if (startsWith(bytes, "\xff\xd8\xff")) return "jpeg"
  return startsWith(bytes, "RIFF") && startsWith(bytes, "WEBP", 8) ? "webp" : undefined
}

export const mediaTypeOf = (kind: PictureKind): string => `image/${kind}`
