/** Moves a camera over a still picture as the prompt says, or else as the seed decides. */
import type { Canvas } from "../../shared/painter/Canvas.ts"

/** The size of a picture relative to the frame that moves over it. */
export const room = 1.25

/** Values at the first and the last frame: the camera's share of the picture, and its position in the rest, 0 to 1. */
export interface Move {
  readonly share: readonly [from: number, to: number]
  readonly x: readonly [from: number, to: number]
  readonly y: readonly [from: number, to: number]
}

const near = 1 / room

const zoom = /\b(?:zoom\w*|dolly|push\w*|pull\w*|mov\w*)\s+(?:\w+\s+){0,2}?(?:(in|into|closer|nearer)|out|away|back)\b/i
const pan = /\b(?:pan\w*|tilt\w*|mov\w*|slid\w*|scroll\w*|track\w*|camera)\s+(?:\w+\s+){0,2}?(left|right|up|down)/i

export const moveOf = (prompt: string, seed: number): Move => {
  const zoomed = zoom.exec(prompt)
  const side = pan.exec(prompt)?.[1]?.toLowerCase()
  const bit = (index: number): boolean => Math.floor(seed / 2 ** index) % 2 === 1
  const along = (forwards: boolean) => forwards ? [0, 1] as const : [1, 0] as const
  const centred = [0.5, 0.5] as const
  if (zoomed !== null) return { share: zoomed[1] === undefined ? [near, 1] : [1, near], x: centred, y: centred }
  if (side === "left" || side === "right") return { share: [near, near], x: along(side === "right"), y: centred }
  if (side !== undefined) return { share: [near, near], x: centred, y: along(side === "down") }
  return { share: bit(0) ? [1, near] : [near, 1], x: along(bit(1)), y: along(bit(2)) }
}

/** Copies the camera's view into the frame, by nearest pixels. `part` is how far the move has come, 0 to 1. */
export const shoot = (picture: Canvas, move: Move, part: number, frame: Canvas): void => {
  const at = ([from, to]: readonly [number, number]): number => from + (to - from) * part
  const share = at(move.share)
  const place = (length: number, size: number, from: number): Int32Array =>
    Int32Array.from({ length }, (_, index) => Math.floor((size - 1) * ((1 - share) * from + share * index / length)))
  const columns = place(frame.width, picture.width, at(move.x))
  const source = new Uint32Array(picture.data.buffer)
  const target = new Uint32Array(frame.data.buffer)
  let to = 0
  for (const row of place(frame.height, picture.height, at(move.y))) {
    for (const column of columns) target[to++] = source[row * picture.width + column]!
  }
}
