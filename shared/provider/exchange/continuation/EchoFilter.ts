/**
 * Removes text from a continued answer that the client already has: models and servers may repeat the beginning that they were given,
 * or its last word, or the space at its end.
 */

/** Maximum length, in characters, of a word or of spaces at the end of the beginning to look for. */
const maxEnd = 64

/** The given beginning without the spaces at its end, which some providers reject. */
export const givenOf = (text: string): string => text.trimEnd()

export class EchoFilter {
  readonly #given: string
  readonly #spaces: string
  /** The word at the end of the text, if the text ends in one, which may be cut. */
  readonly #word: string
  /** How many characters of the given beginning have been repeated; `undefined` if it was not repeated. */
  #repeated: number | undefined = 0
  /** The new text that may still turn out to be a repetition. */
  #held: Array<string> = []
  #isDecided = false

  constructor(text: string) {
    this.#given = givenOf(text)
    this.#spaces = text.slice(this.#given.length).slice(0, maxEnd)
    this.#word = this.#spaces === "" ? /[\p{L}\p{N}]*$/u.exec(this.#given.slice(-maxEnd))?.[0] ?? "" : ""
  }

  /** Adds a piece. Returns the text, of this and held pieces, that is certainly new. */
  push(piece: string): string {
    if (this.#isDecided) return piece
    this.#held.push(piece)
    const from = this.#repeated
    if (from === undefined || from === this.#given.length) return this.#decide(false)
    const expected = this.#given.slice(from, from + piece.length)
    if (!piece.startsWith(expected)) this.#repeated = undefined
    else {
      this.#repeated = from + expected.length
      if (this.#repeated < this.#given.length) return ""
      this.#held = [piece.slice(expected.length)]
    }
    return this.#decide(false)
  }

  /** Ends the answer. Returns the text that was held back. */
  end(): string {
    return this.#isDecided ? "" : this.#decide(true)
  }

  #decide(isEnd: boolean): string {
    const held = this.#held.join("")
    const fresh = this.#repeated === this.#given.length ? held : this.#withoutWord(held, isEnd)
    if (fresh === undefined) return ""
    // a piece may have only the first of the spaces
    if (!isEnd && fresh.length < this.#spaces.length && this.#spaces.startsWith(fresh)) return ""
    this.#isDecided = true
    this.#held = []
    let same = 0
    while (same < this.#spaces.length && fresh[same] === this.#spaces[same]) same++
    return fresh.slice(same)
  }

  /** The text without a repetition of the cut word, as in `gate` and then `gateway`; `undefined` until that is certain. */
  #withoutWord(held: string, isEnd: boolean): string | undefined {
    const word = this.#word
    if (word.length < 2) return held
    if (!isEnd && held.length <= word.length && word.startsWith(held)) return undefined
    return held.startsWith(word) && /^[\p{L}\p{N}]/u.test(held.slice(word.length)) ? held.slice(word.length) : held
  }
}
