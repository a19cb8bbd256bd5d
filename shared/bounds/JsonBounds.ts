/**
 * The most that a JSON text from a client may hold: how many values, and how deeply nested. Both are counted byte by byte,
 * in pieces as they come, before anything is built of the text: a value of two bytes costs fifty or more once it is parsed.
 */

/** Deeper than any real request, and no strain on a recursive reader. */
export const maxDepth = 128

/**
 * Objects, arrays and what is in them. A rerank of 10,000 documents has 20,000, a conversation of 15,000 messages of parts
 * 90,000; 2,048 texts can be embedded at once, and providers take schemas of 5,000 properties. Vectors and token arrays, which
 * hold more, are in no request. So many are checked against the slowest schema in a fraction of a second.
 */
export const maxValues = 100_000

/** The bytes that say where something begins or ends, outside of strings. */
const structural = new Uint8Array(256)
for (const byte of Buffer.from("\"{}[],")) structural[byte] = 1

const quote = 0x22
const backslash = 0x5c

/** Strings are read by the byte up to here; beyond, the search for their end is worth its call. */
const nearBytes = 64

export class JsonBounds {
  #depth = 0
  #values = 1
  #inString = false
  /** The next byte of the string is escaped. */
  #isEscaped = false

  /** Counts a piece, and says by what the text so far is too much; `undefined` where it is not. */
  push(piece: Uint8Array): string | undefined {
    let at = 0
    while (at < piece.length) {
      if (this.#inString) {
        at = this.#behindString(piece, at)
        continue
      }
      while (at < piece.length && structural[piece[at]!] === 0) at++
      switch (piece[at++]) {
        case quote:
          this.#inString = true
          break
        case 0x2c:
          if (++this.#values > maxValues) return tooMany
          break
        case 0x5b:
        case 0x7b:
          if (++this.#values > maxValues) return tooMany
          if (++this.#depth > maxDepth) return tooDeep
          break
        case 0x5d:
        case 0x7d:
          this.#depth--
      }
    }
    return undefined
  }

  /** The index behind the string in which `from` lies, or behind an escaped quote, or behind the piece. */
  #behindString(piece: Uint8Array, from: number): number {
    const near = Math.min(piece.length, from + nearBytes)
    let at = from
    for (; at < near; at++) {
      if (this.#isEscaped) this.#isEscaped = false
      else if (piece[at] === backslash) this.#isEscaped = true
      else if (piece[at] === quote) {
        this.#inString = false
        return at + 1
      }
    }
    const found = piece.indexOf(quote, at)
    const end = found === -1 ? piece.length : found
    let first = end
    while (first > at && piece[first - 1] === backslash) first--
    const isEscaped = (end - first + (first === at && this.#isEscaped ? 1 : 0)) % 2 === 1
    this.#isEscaped = found === -1 && isEscaped
    if (found === -1) return end
    this.#inString = isEscaped
    return found + 1
  }
}

const tooMany = `holds more than ${maxValues} values`
const tooDeep = `nests deeper than ${maxDepth} levels`

/** By what a whole text is too much. */
export const excessOf = (bytes: Uint8Array): string | undefined => new JsonBounds().push(bytes)
