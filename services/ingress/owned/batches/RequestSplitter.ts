/**
 * Splits the body of a request for a batch of messages, `{"requests": [{…}, {…}]}`, into its requests while it comes in: only one of
 * them is in memory at a time. The rest of the body is small, and is checked at the end.
 */
import { closingQuote, openEscaped, structural } from "../../../../shared/bounds/JsonBytes.ts"

const [quote, openBrace, closeBrace, openBracket, closeBracket] = [0x22, 0x7b, 0x7d, 0x5b, 0x5d]

/** The depth of the requests: in an array in an object. */
const requestDepth = 2

/** The most bytes around the requests. */
const maxFrameBytes = 1024 * 1024

/** Stands for a request in the frame. */
const stand = Buffer.from("0")

export class RequestSplitter {
  #depth = 0
  #inString = false
  #isEscaped = false
  #request: Array<Uint8Array> | undefined
  readonly #frame: Array<Uint8Array> = []
  #frameBytes = 0

  /** The requests that end in this piece. */
  push(piece: Uint8Array): ReadonlyArray<Uint8Array> {
    const requests: Array<Uint8Array> = []
    let from = 0
    let at = 0
    while (at < piece.length) {
      if (this.#inString) {
        const end = closingQuote(piece, at, this.#isEscaped)
        this.#isEscaped = end === openEscaped
        if (end < 0) break
        this.#inString = false
        at = end + 1
        continue
      }
      while (at < piece.length && structural[piece[at] ?? 0] === 0) at++
      const byte = piece[at++]
      if (byte === quote) this.#inString = true
      else if (byte === openBrace || byte === openBracket) {
        if (byte === openBrace && this.#depth === requestDepth && this.#request === undefined) {
          this.#keepFrame(piece.subarray(from, at - 1))
          this.#keepFrame(stand)
          this.#request = []
          from = at - 1
        }
        this.#depth++
      } else if (byte === closeBrace || byte === closeBracket) {
        this.#depth--
        if (this.#depth === requestDepth && this.#request !== undefined) {
          requests.push(Buffer.concat([...this.#request, piece.subarray(from, at)]))
          this.#request = undefined
          from = at
        }
      }
    }
    const rest = piece.subarray(from)
    if (this.#request === undefined) this.#keepFrame(rest)
    else this.#request.push(rest)
    return requests
  }

  /** Whether the bytes around the requests are too many. */
  get isTooLarge(): boolean {
    return this.#frameBytes > maxFrameBytes
  }

  /** The body with a `0` for each request; a part of it if it ends within a request. */
  get frame(): Uint8Array {
    return Buffer.concat(this.#frame)
  }

  #keepFrame(bytes: Uint8Array): void {
    this.#frameBytes += bytes.length
    if (!this.isTooLarge) this.#frame.push(bytes)
  }
}
