/** Splits the content of a file of requests into lines. */
import { Stream } from "effect"

export interface InputLine {
  /** Among the lines that are not empty, from 0. */
  readonly index: number
  /** Among all lines, from 1. */
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
    // a copy: the rest of the page would stay in memory with it
    if (at < bytes.length) this.#parts.push(bytes.slice(at))
    return lines
  }

  /** The line that the parts make up; none if it is empty. */
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
