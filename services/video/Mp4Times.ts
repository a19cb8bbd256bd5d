/** Takes the time of making out of an MP4 file, so that the same frames give the same file. */

/** The boxes on the way to those that hold times (ISO 14496-12, section 8). */
const containers = new Set(["moov", "trak", "mdia"])
const timed = new Set(["mvhd", "tkhd", "mdhd"])

/** Sets the times of creation and change to zero, in place. */
export const clear = (file: Uint8Array): void =>
  clearIn(new DataView(file.buffer, file.byteOffset, file.byteLength), 0, file.byteLength)

const clearIn = (view: DataView, from: number, until: number): void => {
  for (let at = from; at + 8 <= until;) {
    const size = view.getUint32(at)
    const type = String.fromCharCode(...[4, 5, 6, 7].map((index) => view.getUint8(at + index)))
    // 0 is up to the end of the file, 1 a size of 64 bits: both are for what holds the frames
    if (size < 8) return
    if (containers.has(type)) clearIn(view, at + 8, at + size)
    if (timed.has(type)) {
      const isWide = view.getUint8(at + 8) === 1
      for (let index = 0; index < (isWide ? 16 : 8); index++) view.setUint8(at + 12 + index, 0)
    }
    at += size
  }
}
