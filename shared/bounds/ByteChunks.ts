/** Cuts a stream of bytes into pieces of one size. */
import { Stream } from "effect"

/** Collects bytes into pieces. Copies them, because a small view would keep the whole buffer behind it in memory. */
class Chunk {
  readonly #size: number
  #buffer: Uint8Array | undefined
  #length = 0

  constructor(size: number) {
    this.#size = size
  }

  /** Adds bytes, and returns the pieces that are now full. */
  push(bytes: Uint8Array): ReadonlyArray<Uint8Array> {
    const full: Array<Uint8Array> = []
    for (let at = 0; at < bytes.length;) {
      const part = bytes.subarray(at, at + this.#size - this.#length)
      at += part.length
      const buffer = this.#buffer ??= new Uint8Array(this.#size)
      buffer.set(part, this.#length)
      this.#length += part.length
      if (this.#length < this.#size) continue
      full.push(buffer)
      this.#buffer = undefined
      this.#length = 0
    }
    return full
  }

  /** The last piece, if there is one. */
  rest(): ReadonlyArray<Uint8Array> {
    return this.#buffer === undefined ? [] : [this.#buffer.subarray(0, this.#length)]
  }
}

/** The same bytes in pieces of this size. Only the last one may be smaller. */
export const ofSize = (size: number) => <E, R>(bytes: Stream.Stream<Uint8Array, E, R>) =>
  Stream.mapAccum(
    bytes,
    () => new Chunk(size),
    (chunk, piece: Uint8Array): readonly [Chunk, ReadonlyArray<Uint8Array>] => [chunk, chunk.push(piece)],
    { onHalt: (chunk) => chunk.rest() }
  )
