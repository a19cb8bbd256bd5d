/** Moves a camera over a still picture as the prompt says; where it says nothing, as bits of the seed decide. */
import type { Canvas } from "../../shared/painter/Canvas.ts"

/** How much larger a picture is than the frame that moves over it. */
export const room = 1.25

/** Where the frame is at the beginning and at the end: its share of the picture, and its place in what is left, 0 to 1. */
export interface Move {
  readonly share: readonly [from: number, to: number]
  readonly x: readonly [from: number, to: number]
  readonly y: readonly [from: number, to: number]
}

const whole = 1
const near = 1 / room
const centred = [0.5, 0.5] as const

const zoom =
  /\b(?:zoom\w*|dolly|push\w*|pull\w*|mov\w*|camera)\s+(?:\w+\s+){0,2}?(in|into|closer|nearer|out|away|back)\b/i
const pan = /\b(?:pan\w*|tilt\w*|mov\w*|slid\w*|scroll\w*|track\w*|camera)\s+(?:\w+\s+){0,2}?(left|right|up|down)\w*/i

export const moveOf = (prompt: string, seed: number): Move => {
  const zoomed = zoom.exec(prompt)?.[1]?.toLowerCase()
  const side = pan.exec(prompt)?.[1]?.toLowerCase()
  const bit = (index: number): boolean => Math.floor(seed / 2 ** index) % 2 === 1
  const along = (forwards: boolean): readonly [number, number] => forwards ? [0, 1] : [1, 0]
  if (zoomed !== undefined) {
    const isIn = ["in", "into", "closer", "nearer"].includes(zoomed)
    return { share: isIn ? [whole, near] : [near, whole], x: centred, y: centred }
  }
  if (side === "left" || side === "right") return { share: [near, near], x: along(side === "right"), y: centred }
  if (side !== undefined) return { share: [near, near], x: centred, y: along(side === "down") }
  return { share: bit(0) ? [whole, near] : [near, whole], x: along(bit(1)), y: along(bit(2)) }
}

const at = ([from, to]: readonly [number, number], along: number): number => from + (to - from) * along

/** What the camera sees, `along` from 0 to 1 of the way: each pixel is mixed from the four of the picture around it. */
export const shoot = (picture: Canvas, move: Move, along: number, frame: Canvas): void => {
  const share = at(move.share, along)
  const stepX = (picture.width - 1) * share / frame.width
  const stepY = (picture.height - 1) * share / frame.height
  const left = (picture.width - 1) * (1 - share) * at(move.x, along)
  const top = (picture.height - 1) * (1 - share) * at(move.y, along)
  const { data: source, width } = picture
  const columns = Int32Array.from({ length: frame.width }, (_, x) => Math.floor((left + x * stepX) * 256))
  let to = 0
  for (let y = 0; y < frame.height; y++) {
    const row = Math.floor((top + y * stepY) * 256)
    const [first, lower] = [(row >> 8) * width, row & 255]
    for (let x = 0; x < frame.width; x++) {
      const column = columns[x]!
      const right = column & 255
      const from = (first + (column >> 8)) * 4
      for (let channel = from; channel < from + 4; channel++) {
        const below = channel + width * 4
        const upper = source[channel]! * (256 - right) + source[channel + 4]! * right
        frame.data[to++] =
          (upper * (256 - lower) + (source[below]! * (256 - right) + source[below + 4]! * right) * lower)
          >> 16
      }
    }
  }
}
