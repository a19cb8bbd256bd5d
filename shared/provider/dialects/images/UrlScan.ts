/**
 * Finds the `url` members of a JSON text, or of a stream of JSON events, as it passes in pieces, in linear time and without
 * holding it: an answer with pictures in base64 is too large for that.
 */
import { closingQuote, openEscaped } from "../../../bounds/JsonBytes.ts"
import * as Json from "../../json/Json.ts"

/** How much of a string is kept in bytes: enough for a name, and for the scheme and the host of an address. */
const keptBytes = 4 * 1024

const quote = 0x22
const colon = 0x3a

/** What ends a member. Nothing else does: lines of a stream of events may break between a name and its value. */
const ends = new Uint8Array(256)
for (const byte of Buffer.from("{}[],")) ends[byte] = 1

/** An escape that was cut in two; a pair of backslashes is none. */
const cutEscape = /(?<=(?:^|[^\\])(?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$/

export class AddressScan {
  readonly #isAcceptable: (address: string) => boolean
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

  constructor(isAcceptable: (address: string) => boolean) {
    this.#isAcceptable = isAcceptable
  }

  /** Whether an address has been found that is not acceptable. */
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

  /** Goes on behind the string's closing quote, or behind the piece. */
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
    // a copy: the piece may be a part of a buffer that is used again
    this.#kept.push(Uint8Array.from(part.subarray(0, room)))
    this.#keptLength += Math.min(room, part.length)
  }

  #close(): void {
    const text = Buffer.concat(this.#kept, this.#keptLength).toString()
    // the text of a picture is nothing to look into
    const value = this.#name === "url" || !this.#isCut
      ? Json.string(Json.parse(`"${this.#isCut ? text.replace(cutEscape, "") : text}"`))
      : undefined
    // servers that send the picture itself leave the address empty
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
