/** Samples of sound: as bytes, and at another rate. */

export const toLittleEndian = (samples: Int16Array): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(samples.length * 2)
  const view = new DataView(bytes.buffer)
  for (const [index, sample] of samples.entries()) view.setInt16(index * 2, sample, true)
  return bytes
}

/** Changes the rate of mono sound as it comes, by cubic curves through its samples. Good for speech, and cheap. */
export class Resampler {
  readonly #from: number
  readonly #to: number
  /** What the next output sample still needs of the input: it lies between the second and the third. */
  #input = new Int16Array(1)
  /** In parts of an input sample, of which there are `to`. */
  #position = 0

  /** Rates in Hz. */
  constructor(from: number, to: number) {
    this.#from = from
    this.#to = to
  }

  /** Takes samples and returns those that can be made by now. */
  push(samples: Int16Array): Int16Array {
    const input = new Int16Array(this.#input.length + samples.length)
    input.set(this.#input)
    input.set(samples, this.#input.length)
    const output = new Int16Array(Math.max(0, Math.ceil(((input.length - 3) * this.#to - this.#position) / this.#from)))
    for (let index = 0; index < output.length; index++) {
      const at = Math.floor(this.#position / this.#to)
      const part = this.#position % this.#to / this.#to
      const [a, b, c, d] = [input[at]!, input[at + 1]!, input[at + 2]!, input[at + 3]!]
      const curve = (3 * (b - c) + d - a) * part + 2 * a - 5 * b + 4 * c - d
      const value = Math.round(b + 0.5 * part * (c - a + part * curve))
      output[index] = Math.max(-32_768, Math.min(32_767, value))
      this.#position += this.#from
    }
    const used = Math.min(Math.floor(this.#position / this.#to), input.length)
    this.#position -= used * this.#to
    this.#input = input.slice(used)
    return output
  }

  /** The rest, as if silence followed. */
  finish(): Int16Array {
    return this.push(new Int16Array(2))
  }
}
