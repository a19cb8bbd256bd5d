/**
 * Finds the `url` members of a JSON text, or of a stream of JSON events, that passes in pieces. Takes linear time and does not
 * hold the text: an answer with pictures in base64 is too large.
 */
import { closingQuote, openEscaped } from "../../../bounds/JsonBytes.ts"
import * as Json from "../../json/Json.ts"

/** The most bytes kept of a string: enough for a name, and for the scheme and host of a URL. */
const keptBytes = 4 * 1024

const quote = 0x22
const colon = 0x3a

/** The bytes that end a member. Line breaks do not: a stream of events may break a line between a name and its value. */
const ends = new Uint8Array(256)
for (const byte of Buffer.from("{}[],")) ends[byte] = 1

/** An escape that was cut in two; a pair of backslashes is none. */
const cutEscape = /(?<=(?:^|[^\\])(?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$/

export class UrlScan {
  readonly #isAcceptable: (url: string) => boolean
  #inString = false
  /** The next byte of the string is escaped. */
  #isEscaped = false
  #kept: Array<Uint8Array> = []
  #keptLength = 0
  #isCut = false
  /** The last string, which is a name if a colon follows it. */
  #last: string | undefined
  /** The name of the member whose value comes next. */
  #name: string | undefined
  #isRefused = false

  constructor(isAcceptable: (url: string) => boolean) {
    this.#isAcceptable = isAcceptable
  }

  /** Whether it has found an unacceptable URL. */
  get isRefused(): boolean {
    return this.#isRefused
  }

  push(piece: Uint8Array): void {
    let at = 0
    while (at < piece.length && !this.#isRefused) {
      if (this.#inString) at = this.#throughString(piece, at)
      else {
        const byte = piece[at++]
        if (byte === quote) this.#inString = true
        else if (byte === colon) {
          this.#name = this.#last ?? this.#name
          this.#last = undefined
        } else if (ends[byte ?? 0] === 1) {
          this.#name = undefined
          this.#last = undefined
        }
      }
    }
  }

  /** Returns the index after the string's closing quote, or after the piece. */
  #throughString(piece: Uint8Array, from: number): number {
    const found = closingQuote(piece, from, this.#isEscaped)
    this.#isEscaped = found === openEscaped
    const end = found < 0 ? piece.length : found
    this.#keep(piece.subarray(from, end))
    if (found >= 0) this.#close()
    return end + 1
  }

  #keep(part: Uint8Array): void {
    const room = keptBytes - this.#keptLength
    if (part.length > room) this.#isCut = true
    if (room === 0 || part.length === 0) return
    // a copy: the piece may be part of a buffer that is reused
    this.#kept.push(Uint8Array.from(part.subarray(0, room)))
    this.#keptLength += Math.min(room, part.length)
  }

  #close(): void {
    const text = Buffer.concat(this.#kept, this.#keptLength).toString()
    // any other long string is a picture in base64
    const value = this.#name === "url" || !this.#isCut
      ? Json.string(Json.parse(`"${this.#isCut ? text.replace(cutEscape, "") : text}"`))
      : undefined
    // servers that send the picture itself leave the URL empty
    if (this.#name === "url" && value !== "" && !(value !== undefined && this.#isAcceptable(value))) {
      this.#isRefused = true
    }
    this.#last = this.#name === undefined ? value : undefined
    this.#name = undefined
    this.#inString = false
    this.#kept = []
    this.#keptLength = 0
    this.#isCut = false
  }
}
