/**
 * Removes from a continued answer what the client already has: models and servers may repeat the beginning they were given, or
 * a word of it, or the space at its end.
 */

/** Longer words and spaces at the end of the beginning are not looked for. In characters. */
const maxEnd = 64

/** The given beginning without the spaces at its end, which some providers reject. */
export const givenOf = (text: string): string => text.trimEnd()

export class EchoFilter {
  readonly #given: string
  readonly #spaces: string
  /** The word at the end, if the text ends in one: it may be cut. */
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

  /** Returns the part of the next piece, and of those before it, that is certainly new. */
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

  /** Returns what was held back: the answer has ended. */
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

  /** Without a repetition of the word that was cut, as in `gate` and then `gateway`; `undefined` until that is certain. */
  #withoutWord(held: string, isEnd: boolean): string | undefined {
    const word = this.#word
    if (word.length < 2) return held
    if (!isEnd && held.length <= word.length && word.startsWith(held)) return undefined
    return held.startsWith(word) && /^[\p{L}\p{N}]/u.test(held.slice(word.length)) ? held.slice(word.length) : held
  }
}
