/**
 * Splits the body of a request for a batch of messages, `{"requests": [{…}, {…}]}`, into its requests while it arrives: only one of
 * them is in memory at a time. The frame, which is the rest of the body, is small and is checked at the end.
 */
import { closingQuote, nextStructural, openEscaped } from "../../../../shared/bounds/JsonBytes.ts"
import { BodyCollector } from "../../body/BodyCollector.ts"
import { maxBodyBytes } from "../../body/BodyMemory.ts"
import type { UploadBudget } from "../../body/UploadBudget.ts"

const [quote, openBrace, closeBrace, openBracket, closeBracket] = [0x22, 0x7b, 0x7d, 0x5b, 0x5d]

/** The depth of the requests: in an array in an object. */
const requestDepth = 2

/** Maximum size of the frame. */
const maxFrameBytes = 1024 * 1024

/** Stands for a request in the frame. */
const stand = Buffer.from("0")

export class RequestSplitter {
  #depth = 0
  #inString = false
  #isEscaped = false
  #request: BodyCollector | undefined
  readonly #budget: UploadBudget
  #frame = Buffer.alloc(0)
  #frameBytes = 0

  constructor(budget: UploadBudget) {
    this.#budget = budget
  }

  /** The requests that end in this piece; `undefined` if there is no memory for one. */
  push(piece: Uint8Array): ReadonlyArray<Uint8Array> | undefined {
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
      at = nextStructural(piece, at)
      const byte = piece[at++]
      if (byte === quote) this.#inString = true
      else if (byte === openBrace || byte === openBracket) {
        if (byte === openBrace && this.#depth === requestDepth && this.#request === undefined) {
          this.#keepFrame(piece.subarray(from, at - 1))
          this.#keepFrame(stand)
          this.#request = new BodyCollector(this.#budget, 0, maxBodyBytes)
          from = at - 1
        }
        this.#depth++
      } else if (byte === closeBrace || byte === closeBracket) {
        this.#depth--
        if (this.#depth === requestDepth && this.#request !== undefined) {
          if (!this.#request.add(piece.subarray(from, at))) return undefined
          requests.push(this.#request.take())
          this.#request = undefined
          from = at
        }
      }
    }
    const rest = piece.subarray(from)
    if (this.#request === undefined) this.#keepFrame(rest)
    else if (!this.#request.add(rest)) return undefined
    return requests
  }

  /** The size of the request that is not complete yet. */
  get heldBytes(): number {
    return this.#request?.size ?? 0
  }

  /** Whether the bytes around the requests are too many. */
  get isTooLarge(): boolean {
    return this.#frameBytes > maxFrameBytes
  }

  /** The body with a `0` for each request; a part of it if it ends within a request. */
  get frame(): Uint8Array {
    return this.#frame.subarray(0, this.#frameBytes)
  }

  /** Copies the bytes: otherwise the part of a piece would keep all of it in memory. */
  #keepFrame(bytes: Uint8Array): void {
    const at = this.#frameBytes
    this.#frameBytes += bytes.length
    if (this.isTooLarge) return
    if (this.#frameBytes > this.#frame.length) {
      const grown = Buffer.alloc(Math.min(maxFrameBytes, 2 * this.#frameBytes))
      grown.set(this.#frame)
      this.#frame = grown
    }
    this.#frame.set(bytes, at)
  }
}
