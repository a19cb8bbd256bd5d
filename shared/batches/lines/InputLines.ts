/** Splits the content of a file of requests into lines. */
import { Stream } from "effect"

export interface InputLine {
  /** The position among the lines that are not empty, from 0. */
  readonly index: number
  /** The position among all lines, from 1. */
  readonly number: number
  readonly text: string
}

const newline = 0x0a

class Splitter {
  #parts: Array<Uint8Array> = []
  #index = 0
  #number = 0

  push(bytes: Uint8Array): ReadonlyArray<InputLine> {
    const lines: Array<InputLine> = []
    let at = 0
    for (let end = bytes.indexOf(newline); end !== -1; end = bytes.indexOf(newline, at)) {
      this.#parts.push(bytes.subarray(at, end))
      lines.push(...this.end())
      at = end + 1
    }
    // a copy, because a view would keep the whole page in memory
    if (at < bytes.length) this.#parts.push(bytes.slice(at))
    return lines
  }

  /** Ends the current line and returns it; nothing if it is empty. */
  end(): ReadonlyArray<InputLine> {
    const text = Buffer.concat(this.#parts).toString()
    this.#parts = []
    this.#number++
    return text.trim() === "" ? [] : [{ index: this.#index++, number: this.#number, text }]
  }
}

export const linesOf = <E, R>(content: Stream.Stream<Uint8Array, E, R>): Stream.Stream<InputLine, E, R> =>
  Stream.suspend(() => {
    const splitter = new Splitter()
    return Stream.concat(
      Stream.map(content, (bytes) => splitter.push(bytes)),
      Stream.sync(() => splitter.end())
    ).pipe(Stream.flattenIterable)
  })
