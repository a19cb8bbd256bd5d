/**
 * Makes mono sound longer or shorter as it comes and keeps its pitch, by WSOLA (waveform similarity overlap-add): the output
 * is laid together from overlapping pieces of the input, each taken from near the place where it belongs, there where it
 * continues the piece before it best.
 */

/** Output samples between the beginnings of two pieces: 12.5 ms at 24 kHz. A piece is twice as long. */
const hop = 300
const piece = 2 * hop
/** How far from its place a piece may be taken, in samples: a whole period of the deepest voice lies in reach. */
const reach = 240
/** The first look goes in steps of this many samples, the second goes over its neighbourhood one by one. */
const stride = 6

const window = Float32Array.from({ length: piece }, (_, index) => 0.5 - 0.5 * Math.cos(2 * Math.PI * index / piece))

export class TimeStretch {
  readonly #tempo: number
  #input = new Float32Array(0)
  /** Where `#input` begins in the whole input. */
  #origin = 0
  /** Where in the whole input the next piece belongs, and where the last one was taken from. */
  #place = 0
  #last: number | undefined
  /** The second half of the last piece, faded out, which the next is laid over. */
  #tail = new Float32Array(hop)
  #taken = 0
  #given = 0

  /** `tempo` 2 halves the duration, 0.5 doubles it. */
  constructor(tempo: number) {
    this.#tempo = tempo
  }

  /** Takes samples and returns those that can be made by now. */
  push(samples: Float32Array): Float32Array {
    this.#taken += samples.length
    return this.#advance(samples)
  }

  /** The rest, so that the whole is as long as the tempo says. */
  finish(): Float32Array {
    const due = Math.round(this.#taken / this.#tempo) - this.#given
    const rest = this.#advance(new Float32Array(Math.ceil((due + piece) * this.#tempo) + piece + hop + 2 * reach))
    return rest.slice(0, Math.max(0, due))
  }

  #advance(samples: Float32Array): Float32Array {
    const input = new Float32Array(this.#input.length + samples.length)
    input.set(this.#input)
    input.set(samples, this.#input.length)
    this.#input = input
    const pieces: Array<Float32Array> = []
    // the piece after this one is compared with what follows it, so that has to be there as well
    while (Math.round(this.#place) + reach + piece + hop <= this.#origin + input.length) pieces.push(this.#next())
    const output = new Float32Array(pieces.length * hop)
    for (const [index, made] of pieces.entries()) output.set(made, index * hop)
    this.#given += output.length
    this.#forget()
    return output
  }

  #next(): Float32Array {
    const wanted = Math.round(this.#place)
    const at = this.#last === undefined ? wanted : this.#mostAlike(wanted, this.#last + hop)
    const from = at - this.#origin
    const made = new Float32Array(hop)
    for (let index = 0; index < hop; index++) {
      // the very first piece has none before it to fade in over
      const gain = this.#last === undefined ? 1 : window[index]!
      made[index] = this.#tail[index]! + gain * this.#input[from + index]!
      this.#tail[index] = window[hop + index]! * this.#input[from + hop + index]!
    }
    this.#last = at
    this.#place += hop * this.#tempo
    return made
  }

  /** The place within reach of `wanted` at which the input is most like what it is at `model`. */
  #mostAlike(wanted: number, model: number): number {
    const lowest = Math.max(wanted - reach, this.#origin)
    const highest = wanted + reach
    let best = this.#best(lowest, highest, stride, model)
    best = this.#best(Math.max(lowest, best - stride + 1), Math.min(highest, best + stride - 1), 1, model)
    return best
  }

  #best(lowest: number, highest: number, step: number, model: number): number {
    let best = lowest
    let bestLikeness = Number.NEGATIVE_INFINITY
    for (let at = lowest; at <= highest; at += step) {
      const likeness = this.#likeness(at - this.#origin, model - this.#origin)
      if (likeness <= bestLikeness) continue
      best = at
      bestLikeness = likeness
    }
    return best
  }

  /** How alike two stretches are, whatever their loudness: 1 is the same shape. Every second sample is enough to tell. */
  #likeness(left: number, right: number): number {
    const input = this.#input
    let product = 0
    let energy = 1e-9
    for (let index = 0; index < piece; index += 2) {
      const a = input[left + index]!
      product += a * input[right + index]!
      energy += a * a
    }
    return product / Math.sqrt(energy)
  }

  /** Drops the input that no piece will be taken from, nor compared with, any more. */
  #forget(): void {
    const needed = Math.min(Math.round(this.#place) - reach, this.#last === undefined ? 0 : this.#last + hop)
    const drop = Math.min(Math.max(0, needed - this.#origin), this.#input.length)
    this.#input = this.#input.slice(drop)
    this.#origin += drop
  }
}
