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
const joint = Buffer.of(newline)

const beginsWithPrefix = (frame: Uint8Array): boolean => prefix.every((byte, index) => frame[index] === byte)

/** The `data` of a frame; `undefined` if there is none or it is empty. Several lines are joined by newlines, as in the standard. */
export const dataOf = (frame: Uint8Array): Uint8Array | undefined => {
  const data = linesOf(frame)
  return data === undefined || data.length === 0 ? undefined : data
}

const linesOf = (frame: Uint8Array): Uint8Array | undefined => {
  // nearly every frame is one `data` line and a blank one
  if (frame.indexOf(newline) === frame.length - 2 && beginsWithPrefix(frame) && frame.at(-3) !== carriageReturn) {
    return frame.subarray(frame[prefix.length] === 0x20 ? prefix.length + 1 : prefix.length, -2)
  }
  const lines: Array<Uint8Array> = []
  let start = 0
  while (start < frame.length) {
    const newlineAt = frame.indexOf(newline, start)
    const end = newlineAt === -1 ? frame.length : newlineAt
    const line = frame.subarray(start, frame[end - 1] === carriageReturn ? end - 1 : end)
    if (Buffer.compare(line.subarray(0, prefix.length), prefix) === 0) {
      lines.push(line.subarray(line[prefix.length] === 0x20 ? prefix.length + 1 : prefix.length))
    }
    start = end + 1
  }
  if (lines.length <= 1) return lines[0]
  return Buffer.concat(lines.flatMap((line, index) => index === 0 ? [line] : [joint, line]))
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
  const lines = Buffer.from(replacement).toString("latin1").split("\n").map((line) => `data: ${line}\n`)
  return Buffer.from(lines.join("") + others, "latin1")
}
