/** Helpers for scanners of JSON bytes: the structural bytes, and the search for the end of a string. */

const quote = 0x22
const backslash = 0x5c

/** The bytes that begin or end a value, or separate two: 1 at their index, otherwise 0. */
export const structural = new Uint8Array(256)
for (const byte of Buffer.from("\"{}[],")) structural[byte] = 1

export const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09

/** The index after white space. */
export const skipSpace = (bytes: Uint8Array, from: number): number => {
  let at = from
  while (isSpace(bytes[at])) at++
  return at
}

/** The result of `closingQuote` if the string continues in the next piece and the first byte there is not escaped. */
const open = -1
/** The same if the first byte of the next piece is escaped. */
export const openEscaped = -2

/** The first bytes of a string are compared one by one, this many: `indexOf` is faster only for longer strings. */
const nearBytes = 64

/** The index of the quote that closes a string, searched from an index within the string; negative if the piece has none. */
export const closingQuote = (piece: Uint8Array, from: number, isEscaped = false): number => {
  let at = isEscaped ? from + 1 : from
  for (;;) {
    // with many escaped quotes, a call of `indexOf` for each would cost far more than comparing
    const near = Math.min(piece.length, at + nearBytes)
    while (at < near) {
      const byte = piece[at]
      if (byte === quote) return at
      at += byte === backslash ? 2 : 1
    }
    if (at >= piece.length) return at === piece.length ? open : openEscaped
    const found = piece.indexOf(quote, at)
    const end = found === -1 ? piece.length : found
    let first = end
    while (first > at && piece[first - 1] === backslash) first--
    const endsEscaped = (end - first) % 2 === 1
    if (found === -1) return endsEscaped ? openEscaped : open
    if (!endsEscaped) return found
    at = found + 1
  }
}

/** The index of the next structural byte; the end of the piece if there is none. */
export const nextStructural = (piece: Uint8Array, from: number): number => {
  let at = from
  while (at < piece.length && structural[piece[at]!] === 0) at++
  return at
}
