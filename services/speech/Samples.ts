/** Samples of sound as numbers and as bytes. */

/** 16-bit samples from little-endian bytes; half a sample at the end is dropped. */
export const fromLittleEndian = (bytes: Uint8Array): Int16Array<ArrayBuffer> => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const samples = new Int16Array(bytes.byteLength >> 1)
  for (let index = 0; index < samples.length; index++) samples[index] = view.getInt16(index * 2, true)
  return samples
}

export const toLittleEndian = (samples: Int16Array): Uint8Array<ArrayBuffer> => {
  const bytes = new Uint8Array(samples.length * 2)
  const view = new DataView(bytes.buffer)
  for (let index = 0; index < samples.length; index++) view.setInt16(index * 2, samples[index]!, true)
  return bytes
}

/** 16-bit samples from numbers of the same scale, the too loud ones clipped. */
export const toInt16 = (samples: Float32Array): Int16Array<ArrayBuffer> => {
  const rounded = new Int16Array(samples.length)
  for (let index = 0; index < samples.length; index++) {
    rounded[index] = Math.max(-32_768, Math.min(32_767, Math.round(samples[index]!)))
  }
  return rounded
}
