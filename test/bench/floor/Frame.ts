/**
 * The floor's reply frames: one byte of flags; in the first frame, the status and the media type; then bytes of the body. An
 * answer that is read in one turn is one frame.
 */

export const opens = 1
export const ends = 2

/** The head of a first frame: two bytes of status, one of the media type's length, the media type. */
export const openingOf = (status: number, contentType: string): Buffer => {
  const opening = Buffer.alloc(3 + contentType.length)
  opening.writeUInt16BE(status, 0)
  opening.writeUInt8(contentType.length, 2)
  opening.write(contentType, 3, "latin1")
  return opening
}
