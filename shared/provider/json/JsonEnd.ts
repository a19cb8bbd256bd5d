/** Notices the end of a JSON object or list that arrives in pieces. Looks only at strings and brackets: the text need not be valid. */

const quote = 0x22
const backslash = 0x5c
/** Of `{` and `[`, and of `}` and `]`, which differ in this bit only. */
const withoutKind = ~0x20
const opening = 0x5b
const closing = 0x5d

export class JsonEnd {
  /** The number of open brackets. */
  #depth = 0
  #inString = false
  /** Whether the next character of the string is escaped. */
  #isEscaped = false
  isWhole = false

  push(piece: string): void {
    for (let at = 0; at < piece.length && !this.isWhole; at++) {
      const code = piece.charCodeAt(at)
      if (this.#isEscaped) this.#isEscaped = false
      else if (code === quote) this.#inString = !this.#inString
      else if (this.#inString) this.#isEscaped = code === backslash
      else if ((code & withoutKind) === opening) this.#depth++
      else if ((code & withoutKind) === closing) this.isWhole = --this.#depth === 0
    }
  }
}
