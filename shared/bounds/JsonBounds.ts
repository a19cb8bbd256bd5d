/**
 * Limits the number of values and the depth of JSON from clients. Both are counted as the bytes arrive, before the text is parsed,
 * because a value of two bytes takes fifty or more bytes once parsed.
 */
import { Predicate } from "effect"
import { closingQuote, openEscaped, structural } from "./JsonBytes.ts"
import { membersIn } from "./JsonMembers.ts"

/** Deeper than any real request, and safe for a recursive reader. */
export const maxDepth = 128

/**
 * Maximum number of values: objects, arrays and their items. A rerank of 10,000 documents has 20,000, a conversation of 15,000 messages
 * with parts 90,000. Embeddings accept up to 2,048 texts, and providers accept schemas of 5,000 properties. No request holds vectors
 * or token arrays, which are larger. The slowest schema checks this number of values in a fraction of a second.
 */
export const maxValues = 100_000

export class JsonBounds {
  #depth = 0
  #values = 1
  #outermostCommas = 0
  #inString = false
  /** Whether the next byte of the string is escaped. */
  #isEscaped = false

  /** Counts a piece. Returns the limit that the text exceeds so far; `undefined` if none. */
  push(piece: Uint8Array): string | undefined {
    let at = 0
    while (at < piece.length) {
      if (this.#inString) {
        const end = closingQuote(piece, at, this.#isEscaped)
        this.#isEscaped = end === openEscaped
        if (end < 0) return undefined
        this.#inString = false
        at = end + 1
        continue
      }
      while (at < piece.length && structural[piece[at]!] === 0) at++
      switch (piece[at++]) {
        case 0x22:
          this.#inString = true
          break
        case 0x2c:
          if (++this.#values > maxValues) return tooMany
          if (this.#depth === 1) this.#outermostCommas++
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

  /** Whether the outermost object, which has been pushed and parsed, has two members of one name. `JSON.parse` keeps the last. */
  repeatsMember(parsed: unknown): boolean {
    if (!Predicate.isReadonlyObject(parsed)) return false
    const count = Object.keys(parsed).length
    return count > 0 && count <= this.#outermostCommas
  }
}

const tooMany = `holds more than ${maxValues} values`
const tooDeep = `nests deeper than ${maxDepth} levels`

/** The limit that a whole text exceeds; `undefined` if none. */
export const excessOf = (bytes: Uint8Array): string | undefined => new JsonBounds().push(bytes)

/** The first name that two members of the outermost object have, in a valid text. */
export const repeatedMember = (bytes: Uint8Array): string | undefined => {
  const seen = new Set<string>()
  for (const { name } of membersIn(bytes) ?? []) {
    if (seen.has(name)) return name
    seen.add(name)
  }
  return undefined
}
