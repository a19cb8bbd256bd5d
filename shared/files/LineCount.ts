/** Counts the lines of a file. */
export class LineCount {
  #ended = 0
  #isOpen = false

  get count(): number {
    return this.#ended + (this.#isOpen ? 1 : 0)
  }

  /** Counts the lines in further bytes. Returns `undefined`, where `BatchLines` reports a mistake. */
  push(bytes: Uint8Array): undefined {
    let at = 0
    for (let end = bytes.indexOf(0x0a); end !== -1; end = bytes.indexOf(0x0a, at)) {
      this.#ended += 1
      at = end + 1
    }
    if (bytes.length > 0) this.#isOpen = at < bytes.length
  }

  end(): undefined {}
}
