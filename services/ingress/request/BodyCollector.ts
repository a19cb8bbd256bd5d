/**
 * The bytes of one body while they arrive. Beyond the first few they are copied into a buffer of their own, whose room is
 * reserved first: pieces that are kept and joined at the end would hold everything twice.
 */
import { freeBytes, type ReadingRoom } from "./ReadingRoom.ts"

export class BodyCollector {
  readonly #room: ReadingRoom
  /** What the client says, or 0. */
  readonly #told: number
  readonly #most: number
  #size = 0
  /** The first pieces, as long as they are few. */
  #pieces: Array<Uint8Array> = []
  #buffer = new ArrayBuffer(0)

  constructor(room: ReadingRoom, told: number, most: number) {
    this.#room = room
    this.#told = told
    this.#most = most
  }

  get size(): number {
    return this.#size
  }

  /** Takes one more piece, of a body that is no larger than the most; `false` if there is no room for it. */
  add(piece: Uint8Array): boolean {
    const size = this.#size + piece.length
    if (this.#buffer.byteLength === 0 && size < freeBytes) this.#pieces.push(piece)
    else {
      if (size > this.#buffer.byteLength && !this.#grow(size)) return false
      new Uint8Array(this.#buffer).set(piece, this.#size)
    }
    this.#size = size
    return true
  }

  /** The whole body. */
  take(): Uint8Array {
    const [first] = this.#pieces
    if (first !== undefined) return this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces, this.#size)
    return new Uint8Array(this.#size === this.#buffer.byteLength ? this.#buffer : this.#buffer.transfer(this.#size))
  }

  /** Frees the memory at once, where garbage collection would take its time. */
  drop(): void {
    this.#pieces = []
    if (!this.#buffer.detached) this.#buffer.transfer(0)
  }

  /** To the whole size if the client has told it, else to twice as much. */
  #grow(size: number): boolean {
    const wanted = size <= this.#told ? this.#told : Math.min(this.#most, Math.max(size, 2 * this.#size))
    // what is not there for twice as much may be there for this piece
    const length = this.#room.hasRoomFor(wanted) ? wanted : this.#room.hasRoomFor(size) ? size : 0
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
