/** Which kind of picture bytes are, by how they begin: what servers and clients say of it is not relied on. */

/** The kinds that are taken from providers and given to clients. */
export type PictureKind = "png" | "jpeg" | "webp"

const startsWith = (bytes: Uint8Array, text: string, at = 0): boolean =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1", at, at + text.length) === text

/** `undefined` for anything else. */
export const pictureKind = (bytes: Uint8Array): PictureKind | undefined => {
  if (startsWith(bytes, "\x89PNG\r\n\x1a\n")) return "png"
  if (startsWith(bytes, "\xff\xd8\xff")) return "jpeg"
  return startsWith(bytes, "RIFF") && startsWith(bytes, "WEBP", 8) ? "webp" : undefined
}

export const mediaTypeOf = (kind: PictureKind): string => `image/${kind}`
