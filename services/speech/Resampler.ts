/**
 * Changes the sample rate of mono sound as it comes, by a polyphase filter: a sinc under a Kaiser window, cut off just below
 * the lower of the two Nyquist frequencies.
 */

/** Input samples that each output sample is made of. */
const taps = 32
/** Where the filter's pass band ends, as a share of the lower Nyquist frequency. */
const cutoff = 0.94
/** Kaiser's beta: about 80 dB of attenuation. */
const beta = 8

const gcd = (a: number, b: number): number => b === 0 ? a : gcd(b, a % b)

/** The modified Bessel function of the first kind and order 0. */
const bessel = (x: number): number => {
  let sum = 1
  for (let k = 1, term = 1; term > 1e-12 * sum; k++) {
    term *= (x / (2 * k)) ** 2
    sum += term
  }
  return sum
}

/** One row of `taps` coefficients for each of the `phases` places of an output sample between two input samples. */
const coefficients = (phases: number, scale: number): Float32Array => {
  const table = new Float32Array(phases * taps)
  for (let phase = 0; phase < phases; phase++) {
    let sum = 0
    for (let tap = 0; tap < taps; tap++) {
      const at = tap - taps / 2 + 1 - phase / phases
      const x = Math.PI * at * cutoff * scale
      const window = bessel(beta * Math.sqrt(Math.max(0, 1 - (2 * at / taps) ** 2))) / bessel(beta)
      const value = (x === 0 ? 1 : Math.sin(x) / x) * window
      table[phase * taps + tap] = value
      sum += value
    }
    for (let tap = 0; tap < taps; tap++) table[phase * taps + tap]! /= sum
  }
  return table
}

export class Resampler {
  readonly #phases: number
  readonly #step: number
  readonly #table: Float32Array
  /** What is still needed of the input, beginning `taps / 2 - 1` samples before the next output sample. */
  #input = new Float32Array(taps / 2 - 1)
  /** The next output sample's place behind that beginning, in units of 1 / phases of an input sample. */
  #position = 0

  /** Rates in Hz, whole numbers. */
  constructor(from: number, to: number) {
    const divisor = gcd(from, to)
    this.#phases = to / divisor
    this.#step = from / divisor
    this.#table = coefficients(this.#phases, Math.min(1, to / from))
  }

  /** Takes samples and returns those that can be made by now. */
  push(samples: ArrayLike<number>): Float32Array {
    const input = new Float32Array(this.#input.length + samples.length)
    input.set(this.#input)
    input.set(samples, this.#input.length)
    const available = (input.length - taps + 1) * this.#phases - this.#position
    const output = new Float32Array(Math.max(0, Math.ceil(available / this.#step)))
    for (let index = 0; index < output.length; index++) {
      const start = Math.floor(this.#position / this.#phases)
      const row = (this.#position % this.#phases) * taps
      let sum = 0
      for (let tap = 0; tap < taps; tap++) sum += input[start + tap]! * this.#table[row + tap]!
      output[index] = sum
      this.#position += this.#step
    }
    const used = Math.min(Math.floor(this.#position / this.#phases), input.length)
    this.#position -= used * this.#phases
    this.#input = input.slice(used)
    return output
  }

  /** The rest, as if silence followed. */
  finish(): Float32Array {
    return this.push(new Float32Array(taps / 2))
  }
}
