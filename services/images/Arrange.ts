/** Puts several pictures together into one. */
import { Effect } from "effect"
import { sharp } from "../../shared/files/PixelFormats.ts"
import type { InternalError } from "../../shared/contract/JobError.ts"
import type { Arrangement } from "./Instruction.ts"
import { open, type Pixels, take } from "./Pixels.ts"

const longestSide = 4096

interface Piece {
  readonly pixels: Pixels
  readonly left: number
  readonly top: number
}

const onSheet = (width: number, height: number, pieces: ReadonlyArray<Piece>) =>
  take(
    sharp({ create: { width, height, channels: 4, background: { r: 255, g: 255, b: 255, alpha: 1 } } })
      .composite(pieces.map(({ left, pixels, top }) => ({
        input: pixels.data,
        raw: { width: pixels.width, height: pixels.height, channels: 4 as const },
        left,
        top
      })))
  )

const resized = (pixels: Pixels, width: number, height: number, fit: "fill" | "cover" = "fill") =>
  take(open(pixels).resize(Math.max(1, Math.round(width)), Math.max(1, Math.round(height)), { fit }))

/** Beside or below one another, scaled to one height or width. */
const inLine = Effect.fnUntraced(function*(images: ReadonlyArray<Pixels>, direction: "row" | "column") {
  const [first] = images
  if (first === undefined) return yield* Effect.die(new Error("there is no picture"))
  const isRow = direction === "row"
  const along = images.map(({ height, width }) => isRow ? width * first.height / height : height * first.width / width)
  const across = isRow ? first.height : first.width
  const scale = Math.min(1, longestSide / along.reduce((sum, length) => sum + length, 0))
  const pieces: Array<Piece> = []
  let at = 0
  for (const [index, image] of images.entries()) {
    const length = Math.max(1, Math.round((along[index] ?? 1) * scale))
    const breadth = Math.max(1, Math.round(across * scale))
    const pixels = isRow ? yield* resized(image, length, breadth) : yield* resized(image, breadth, length)
    pieces.push({ pixels, left: isRow ? at : 0, top: isRow ? 0 : at })
    at += length
  }
  const breadth = Math.max(1, Math.round(across * scale))
  return yield* isRow ? onSheet(at, breadth, pieces) : onSheet(breadth, at, pieces)
})

/** In rows of equal cells, each of the shape of the first picture. */
const inGrid = Effect.fnUntraced(function*(images: ReadonlyArray<Pixels>, first: Pixels) {
  const columns = Math.ceil(Math.sqrt(images.length))
  const rows = Math.ceil(images.length / columns)
  const scale = Math.min(1, longestSide / (first.width * columns), longestSide / (first.height * rows))
  const [width, height] = [Math.max(1, Math.round(first.width * scale)), Math.max(1, Math.round(first.height * scale))]
  const pieces = yield* Effect.forEach(
    images,
    (image, at) =>
      Effect.map(resized(image, width, height, "cover"), (pixels): Piece => ({
        pixels,
        left: (at % columns) * width,
        top: Math.floor(at / columns) * height
      }))
  )
  return yield* onSheet(width * columns, height * rows, pieces)
})

/** Over one another, each as strong as the others. */
const blended = Effect.fnUntraced(function*(images: ReadonlyArray<Pixels>, first: Pixels) {
  let below = first
  for (const [at, image] of images.slice(1).entries()) {
    const above = yield* resized(image, first.width, first.height, "cover")
    const faint = yield* take(open(above).linear([1, 1, 1, 1 / (at + 2)], [0, 0, 0, 0]))
    below = yield* take(
      open(below).composite([{
        input: faint.data,
        raw: { width: faint.width, height: faint.height, channels: 4 }
      }])
    )
  }
  return below
})

/** The first one whole, the others small in its lower right corner, side by side. */
const inCorner = Effect.fnUntraced(function*(images: ReadonlyArray<Pixels>, first: Pixels) {
  const edge = Math.round(Math.min(first.width, first.height) * 0.04)
  const room = Math.max(1, Math.min(first.width, first.height) * 0.36)
  const pieces: Array<Piece> = [{ pixels: first, left: 0, top: 0 }]
  let right = first.width - edge
  for (const image of images.slice(1)) {
    const pixels = yield* take(open(image).resize(Math.ceil(room), Math.ceil(room), { fit: "inside" }))
    const left = right - pixels.width
    if (left < 0) break
    pieces.push({ pixels, left, top: Math.max(0, first.height - edge - pixels.height) })
    right = left - edge
  }
  return yield* onSheet(first.width, first.height, pieces)
})

const names: Record<Arrangement, string> = {
  row: "side by side",
  column: "one below the other",
  grid: "in a grid",
  blend: "over one another",
  inset: "the first one whole, the others in its corner"
}

/** One picture of several, and how they were put together; of one, the same. */
export const arrange = Effect.fn("Arrange.arrange")(function*(
  images: readonly [Pixels, ...Array<Pixels>],
  arrangement: Arrangement
): Effect.fn.Return<{ readonly pixels: Pixels; readonly how: string | undefined }, InternalError> {
  const [first] = images
  if (images.length === 1) return { pixels: first, how: undefined }
  const how = `put ${images.length} pictures together, ${names[arrangement]}`
  switch (arrangement) {
    case "row":
    case "column":
      return { pixels: yield* inLine(images, arrangement), how }
    case "grid":
      return { pixels: yield* inGrid(images, first), how }
    case "blend":
      return { pixels: yield* blended(images, first), how }
    case "inset":
      return { pixels: yield* inCorner(images, first), how }
  }
})
