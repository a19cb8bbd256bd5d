/**
 * The floor's reply frames: one byte of flags, then, where the frame opens the answer, its status and media type, then
 * bytes of the body. An answer that is read in one turn travels as one frame.
 */

export const opens = 1
export const ends = 2

/** What a frame holds that opens an answer: two bytes of status, one of the media type's length, the media type. */
export const openingOf = (status: number, contentType: string): Buffer => {
  const opening = Buffer.alloc(3 + contentType.length)
  opening.writeUInt16BE(status, 0)
  opening.writeUInt8(contentType.length, 2)
  opening.write(contentType, 3, "latin1")
  return opening
}
