/** Converts sound samples to bytes, and to another sample rate. */
import { endianness } from "node:os"

export const toLittleEndian = (samples: Int16Array): Uint8Array<ArrayBuffer> => {
  const bytes = Buffer.from(samples.slice().buffer)
  return endianness() === "LE" ? bytes : bytes.swap16()
}

/** Changes the rate of mono sound, both in Hz, by cubic curves through its samples: cheap, and good for speech. */
export const resample = (samples: Int16Array, from: number, to: number): Int16Array => {
  const output = new Int16Array(Math.floor(samples.length * to / from))
  const last = samples.length - 1
  for (let index = 0; index < output.length; index++) {
    const position = index * from / to
    const at = Math.floor(position)
    const part = position - at
    const [a, b] = [samples[Math.max(0, at - 1)]!, samples[at]!]
    const [c, d] = [samples[Math.min(last, at + 1)]!, samples[Math.min(last, at + 2)]!]
    const curve = (3 * (b - c) + d - a) * part + 2 * a - 5 * b + 4 * c - d
    output[index] = Math.max(-32_768, Math.min(32_767, Math.round(b + 0.5 * part * (c - a + part * curve))))
  }
  return output
}
