/**
 * Collects the bytes of one body. All but small bodies are copied into one buffer whose memory is reserved first: keeping
 * the pieces and joining them at the end would hold every byte twice.
 */
import { uncountedBytes, type UploadBudget } from "./UploadBudget.ts"

export class BodyCollector {
  readonly #budget: UploadBudget
  /** From `content-length`, or 0. */
  readonly #announcedBytes: number
  readonly #maxBytes: number
  #size = 0
  /** The pieces of a body that is still small. */
  #pieces: Array<Uint8Array> = []
  #buffer = new ArrayBuffer(0)

  constructor(budget: UploadBudget, announcedBytes: number, maxBytes: number) {
    this.#budget = budget
    this.#announcedBytes = announcedBytes
    this.#maxBytes = maxBytes
  }

  get size(): number {
    return this.#size
  }

  /** Adds a piece to a body that stays within the maximum size; `false` if there is no memory for it. */
  add(piece: Uint8Array): boolean {
    const size = this.#size + piece.length
    if (this.#buffer.byteLength === 0 && size < uncountedBytes) this.#pieces.push(piece)
    else {
      if (size > this.#buffer.byteLength && !this.#grow(size)) return false
      new Uint8Array(this.#buffer).set(piece, this.#size)
    }
    this.#size = size
    return true
  }

  /** The complete body. */
  take(): Uint8Array {
    const [first] = this.#pieces
    if (first !== undefined) return this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces, this.#size)
    return new Uint8Array(this.#size === this.#buffer.byteLength ? this.#buffer : this.#buffer.transfer(this.#size))
  }

  /** Frees the memory at once, before the next garbage collection. */
  drop(): void {
    this.#pieces = []
    if (!this.#buffer.detached) this.#buffer.transfer(0)
  }

  /** Grows the buffer to the announced size if that is enough, else to twice the size. */
  #grow(size: number): boolean {
    const wanted = size <= this.#announcedBytes
      ? this.#announcedBytes
      : Math.min(this.#maxBytes, Math.max(size, 2 * this.#size))
    // there may be memory for this piece even if there is none for twice the size
    const length = this.#budget.reserve(wanted) ? wanted : this.#budget.reserve(size) ? size : 0
    if (length === 0) return false
    // frees the old buffer at once
    this.#buffer = this.#buffer.transfer(length)
    let at = 0
    for (const piece of this.#pieces) {
      new Uint8Array(this.#buffer).set(piece, at)
      at += piece.length
    }
    this.#pieces = []
    return true
  }
}
