/**
 * Collects the bytes of one body. They are copied into one buffer whose memory is reserved first: keeping the pieces and joining them
 * at the end would hold every byte twice, and a piece of one byte takes a hundred bytes. Most bodies arrive in one piece, which
 * needs no copy.
 */
import type { UploadBudget } from "./UploadBudget.ts"

/** The memory that a body in several pieces takes at least, unless it is announced to be smaller. */
const firstBytes = 4 * 1024

export class BodyCollector {
  readonly #budget: UploadBudget
  /** The size in `content-length`, or 0. Nothing is reserved for what is announced and has not arrived. */
  readonly #announcedBytes: number
  readonly #maxBytes: number
  #size = 0
  /** A body that arrived in one piece. */
  #only: Uint8Array | undefined
  #buffer: ArrayBuffer | undefined

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
    if (this.#size === 0 && size === this.#announcedBytes) this.#only = piece
    else {
      const buffer = this.#bufferFor(size)
      if (buffer === undefined) return false
      new Uint8Array(buffer).set(piece, this.#size)
    }
    this.#size = size
    return true
  }

  /** Waits until there is memory for a piece that could not be added, and then adds it. */
  addLater(piece: Uint8Array, done: (isAdded: boolean) => void): () => void {
    const size = this.#size + piece.length
    return this.#budget.whenFree(this.#grown(size), size, (isGranted) => done(isGranted && this.add(piece)))
  }

  /** The complete body. The collector forgets it, so that only its new owner keeps it in memory. */
  take(): Uint8Array {
    const only = this.#only
    const buffer = this.#buffer ?? new ArrayBuffer(0)
    this.#only = this.#buffer = undefined
    if (only !== undefined) return only
    return new Uint8Array(this.#size === buffer.byteLength ? buffer : buffer.transfer(this.#size))
  }

  /** Frees the memory immediately, before the next garbage collection, unless the body was taken. */
  drop(): void {
    this.#only = undefined
    if (this.#buffer?.detached === false) this.#buffer.transfer(0)
  }

  /** The size to grow to: twice the size, but not more than may arrive. */
  #grown(size: number): number {
    const most = Math.max(size, this.#announcedBytes || this.#maxBytes)
    return Math.min(most, Math.max(firstBytes, size, 2 * (this.#buffer?.byteLength ?? 0)))
  }

  /** The buffer, grown if need be; `undefined` if there is no memory. */
  #bufferFor(size: number): ArrayBuffer | undefined {
    const buffer = this.#buffer
    if (buffer !== undefined && size <= buffer.byteLength) return buffer
    const grown = this.#grown(size)
    // there may be memory for a small step, or for this piece, even if there is none for twice the size
    const length = [grown, Math.min(grown, Math.ceil(1.125 * size)), size].find((each) => this.#budget.reserve(each))
    if (length === undefined) return undefined
    // a transfer frees the old buffer immediately
    return this.#buffer = buffer?.transfer(length) ?? new ArrayBuffer(length)
  }
}
