/** Splits a stream of server-sent events, in pieces of any size, into whole frames, without changing a byte. */

const newline = 0x0a
const carriageReturn = 0x0d

/** Maximum size of a frame: large enough for an image in base64. */
export const maxFrameBytes = 16 * 1024 * 1024

export class SseFrames {
  /** The pieces of the incomplete frame, joined only when the frame may have ended. */
  #rest: Array<Uint8Array> = []
  #restBytes = 0
  /** The last two bytes of the incomplete frame. */
  readonly #tail = new Uint8Array(2)

  /** Adds a chunk, and returns the frames that are now complete, each with its final blank line. */
  push(chunk: Uint8Array): ReadonlyArray<Uint8Array> {
    const searched = this.#restBytes
    const endsOne = this.#endsFrame(chunk)
    this.#rest.push(chunk)
    this.#restBytes += chunk.length
    this.#note(chunk)
    if (!endsOne) return []
    const bytes = this.#rest.length === 1 ? chunk : Buffer.concat(this.#rest, this.#restBytes)
    const frames: Array<Uint8Array> = []
    let start = 0
    let at = bytes.indexOf(newline, searched)
    while (at !== -1) {
      if (endsFrame(bytes, at, start)) {
        frames.push(bytes.subarray(start, at + 1))
        start = at + 1
      }
      at = bytes.indexOf(newline, at + 1)
    }
    this.#rest = start === bytes.length ? [] : [bytes.subarray(start)]
    this.#restBytes = bytes.length - start
    return frames
  }

  /** Whether a frame ends in the chunk. Looks only at the chunk, because joining all pieces each time would take quadratic time. */
  #endsFrame(chunk: Uint8Array): boolean {
    const byteAt = (at: number) => at < 0 ? this.#tail[at + 2] : chunk[at]
    for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, at + 1)) {
      const before = byteAt(at - 1) === carriageReturn ? at - 2 : at - 1
      if (before < -this.#restBytes || byteAt(before) === newline) return true
    }
    return false
  }

  #note(chunk: Uint8Array): void {
    if (chunk.length === 0) return
    this.#tail[0] = chunk.at(-2) ?? this.#tail[1] ?? 0
    this.#tail[1] = chunk.at(-1) ?? 0
  }

  /** The bytes after the last whole frame. */
  get rest(): Uint8Array {
    return Buffer.concat(this.#rest, this.#restBytes)
  }

  get restBytes(): number {
    return this.#restBytes
  }
}

/** Whether the line that the newline at `at` ends is empty: LF LF, CR LF CR LF, or a mixture. */
const endsFrame = (bytes: Uint8Array, at: number, start: number): boolean => {
  const before = bytes[at - 1] === carriageReturn ? at - 2 : at - 1
  return before < start ? true : bytes[before] === newline
}

const prefix = Buffer.from("data:")
const laterPrefix = Buffer.from("\ndata:")
const space = 0x20

const beginsWithPrefix = (frame: Uint8Array, from: number): boolean => {
  for (let at = 0; at < prefix.length; at++) if (frame[from + at] !== prefix[at]) return false
  return true
}

/** Where the text of the data line at `from` begins. */
const textAt = (frame: Uint8Array, from: number): number =>
  frame[from + prefix.length] === space ? from + prefix.length + 1 : from + prefix.length

/** The `data` of a frame; `undefined` if there is none or it is empty. Several lines are joined by newlines, as in the standard. */
export const dataOf = (frame: Uint8Array): Uint8Array | undefined => {
  const data = linesOf(frame)
  return data === undefined || data.length === 0 ? undefined : data
}

const linesOf = (frame: Uint8Array): Uint8Array | undefined => {
  // nearly every frame is one `data` line and a blank one
  if (frame.indexOf(newline) === frame.length - 2 && beginsWithPrefix(frame, 0) && frame.at(-3) !== carriageReturn) {
    return frame.subarray(textAt(frame, 0), -2)
  }
  const bytes = Buffer.from(frame.buffer, frame.byteOffset, frame.length)
  const first = beginsWithPrefix(frame, 0) ? 0 : bytes.indexOf(laterPrefix) + 1
  if (!beginsWithPrefix(frame, first)) return undefined
  if (bytes.includes(laterPrefix, first)) return joinedLines(frame, first)
  const newlineAt = frame.indexOf(newline, first)
  const end = newlineAt === -1 ? frame.length : newlineAt
  return frame.subarray(textAt(frame, first), frame[end - 1] === carriageReturn ? end - 1 : end)
}

/** Copies byte by byte: a view of each line would take seconds if a frame has millions. */
const joinedLines = (frame: Uint8Array, first: number): Uint8Array => {
  const joined = Buffer.allocUnsafe(frame.length)
  let length = 0
  let start = first
  while (start < frame.length) {
    const isData = beginsWithPrefix(frame, start)
    let at = isData ? textAt(frame, start) : start
    for (; at < frame.length && frame[at] !== newline; at++) if (isData) joined[length++] = frame[at] ?? 0
    if (isData) {
      if (frame[at - 1] === carriageReturn) length--
      joined[length++] = newline
    }
    start = at + 1
  }
  return joined.subarray(0, length - 1)
}

/** Replaces the data that `dataOf` returned. The replacement may have newlines only if the data has several lines. */
export const replaceData = (frame: Uint8Array, data: Uint8Array, replacement: Uint8Array): Uint8Array => {
  const at = data.byteOffset - frame.byteOffset
  // joined data is a copy, though it may share a buffer with the frame
  if (data.buffer === frame.buffer && at >= 0 && at + data.length <= frame.length) {
    return Buffer.concat([frame.subarray(0, at), replacement, frame.subarray(at + data.length)])
  }
  // as latin1, in which every byte is one character
  const others = Buffer.from(frame).toString("latin1").replaceAll(/^data:[^\n]*\n/gm, "")
  return Buffer.concat([dataLines(replacement), Buffer.from(others, "latin1")])
}

const linePrefix = Buffer.from("data: ")

/** The lines of a text as lines of data. Byte by byte, like `joinedLines`. */
const dataLines = (text: Uint8Array): Uint8Array => {
  let count = 1
  for (let at = 0; at < text.length; at++) if (text[at] === newline) count++
  const lines = Buffer.allocUnsafe(text.length + 1 + count * linePrefix.length)
  let length = 0
  for (let at = 0; at <= text.length; at++) {
    if (at === 0 || text[at - 1] === newline) {
      for (let index = 0; index < linePrefix.length; index++) lines[length++] = linePrefix[index] ?? 0
    }
    lines[length++] = text[at] ?? newline
  }
  return lines
}
