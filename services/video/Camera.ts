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

const zoom =
  /\b(?:zoom\w*|doll(?:y|ies)\w*|push\w*|pull\w*|mov\w*)[\s-]+(?:\w+[\s-]+){0,3}?(?:(in|into|closer|nearer|forwards?|towards?)|out|away|back\w*)\b|\b(zoom)/i
const sideways = /\b(?:pan\w*|mov\w*|slid\w*|scroll\w*|track\w*|camera)[\s-]+(?:\w+[\s-]+){0,3}?(left|right)/i
const upright = /\b(?:pan\w*|tilt\w*|mov\w*|slid\w*|scroll\w*|camera|crane\w*)[\s-]+(?:\w+[\s-]+){0,3}?(up|down)/i
const still =
  /\b(?:static|still|fixed|locked|motionless)\s+(?:camera|shot|frame)|\bcamera\s+(?:\w+\s+){0,2}(?:still|static|fixed)\b/i

/** The prompt decides; the seed decides only what the prompt leaves open. */
export const moveOf = (prompt: string, seed: number): Move => {
  const [zooms, into, plain] = zoom.exec(prompt) ?? []
  const across = sideways.exec(prompt)?.[1]?.toLowerCase()
  const along = upright.exec(prompt)?.[1]?.toLowerCase()
  const centred = [0.5, 0.5] as const
  const bit = (index: number): boolean => Math.floor(seed / 2 ** index) % 2 === 1
  const drift = (forwards: boolean) => forwards ? [0, 1] as const : [1, 0] as const
  if (zooms !== undefined || across !== undefined || along !== undefined) {
    const isCloser = into !== undefined || plain !== undefined
    return {
      share: zooms === undefined ? [near, near] : isCloser ? [1, near] : [near, 1],
      x: across === undefined ? centred : drift(across === "right"),
      y: along === undefined ? centred : drift(along === "down")
    }
  }
  if (still.test(prompt)) return { share: [1, 1], x: centred, y: centred }
  return { share: bit(0) ? [1, near] : [near, 1], x: drift(bit(1)), y: drift(bit(2)) }
}

/** Copies the camera's view into the frame, by nearest pixels. `part` is the progress of the move, 0 to 1. */
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
