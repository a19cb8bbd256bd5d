/**
 * Composes a placeholder from a prompt: a sky, a disc and hills in the colours that its words name or suggest, the words
 * themselves in letters, and a mark that says what it is. The same prompt and seed always give the same picture.
 */
import { hash } from "node:crypto"
import { Canvas } from "./Canvas.ts"
import { type Colour, colourOf, fromHue, mix } from "./Colour.ts"
import { widthOf, wrap, writable, write } from "./Lettering.ts"

export interface Painting {
  readonly prompt: string
  /** Its words take their colours and letters out of the picture. */
  readonly negativePrompt?: string
  /** In pixels. */
  readonly width: number
  readonly height: number
  readonly seed: number
  /** Whether the picture is marked as made by a machine. */
  readonly watermark?: boolean
}

const white: Colour = [250, 250, 250]
const black: Colour = [12, 14, 20]

const placeholderMark = "BUILT-IN PLACEHOLDER, NO MODEL"
const machineMark = "AI GENERATED"

/** Letters of the prompt that are written at most. */
const mostLetters = 90

/** Rows, or lines of letters, after which other work can run: at most some milliseconds. */
const rowsAtOnce = 64

/** A hill, from behind to in front: where it begins, how high it rises and how often, and how fast it moves. */
interface Hill {
  readonly colour: Colour
  readonly top: number
  readonly waves: ReadonlyArray<{ readonly rise: number; readonly count: number; readonly phase: number }>
  readonly pace: number
}

interface Composition {
  readonly sky: readonly [above: Colour, below: Colour]
  readonly hills: ReadonlyArray<Hill>
  /** Its place and radius in parts of the width, the height and the shorter side. */
  readonly disc: { readonly x: number; readonly y: number; readonly radius: number; readonly colour: Colour }
  readonly letters: string
}

const wordsOf = (text: string): ReadonlyArray<string> => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

const compose = ({ negativePrompt = "", prompt, seed }: Painting): Composition => {
  const unwanted = new Set(wordsOf(negativePrompt))
  const wanted = prompt.slice(0, 4_000).split(/\s+/u)
    .filter((word) => !wordsOf(word).some((part) => unwanted.has(part)))
  // numbers that look random and depend on nothing but seed and words
  const bytes = hash("sha512", `${seed} ${wanted.join(" ")}`, "buffer")
  let taken = 0
  const between = (low: number, high: number): number => low + (high - low) * bytes.readUInt8(taken++ % 64) / 255
  const hue = between(0, 360)
  const named = wanted.flatMap(wordsOf).map(colourOf).filter((colour) => colour !== undefined)
  const ground = named[0] ?? fromHue(hue, 0.5, 0.45)
  const air = named[1] ?? (named.length > 0 ? mix(ground, white, 0.25) : fromHue(hue + between(90, 200), 0.55, 0.6))
  const light = named[2] ?? mix(air, [255, 214, 130], 0.65)
  const hills = Array.from({ length: 4 }, (_, at): Hill => ({
    colour: mix(mix(ground, air, 0.45 - at * 0.15), black, 0.08 + at * 0.14),
    top: 0.5 + at * 0.12 + between(-0.03, 0.03),
    waves: Array.from({ length: 3 }, (_, wave) => ({
      rise: between(0.02, 0.09) / (wave + 1),
      count: between(0.6, 1.6) * (wave + 1),
      phase: between(0, 2 * Math.PI)
    })),
    pace: (at + 1) * between(0.15, 0.3)
  }))
  const written = writable(wanted.join(" "))
  return {
    sky: [mix(air, black, between(0.05, 0.35)), mix(air, white, between(0.3, 0.55))],
    hills,
    disc: {
      x: between(0.2, 0.8),
      y: between(0.16, 0.34),
      radius: between(0.08, 0.14),
      colour: mix(light, white, 0.45)
    },
    letters: written.length <= mostLetters ? written : `${written.slice(0, mostLetters).replace(/ \S*$/u, "")}...`
  }
}

/** What stands in the picture, for the client. */
export const describe = (painting: Painting): string => {
  const { letters } = compose(painting)
  const words = letters === "" ? "without words" : `that bears the words “${letters.toLowerCase()}”`
  return `A placeholder by the built-in painter, which is no model: a landscape ${words}`
}

/** Paints the moment of an animation at so many seconds, 0 for a still. Yields where other work can run. */
export function* steps(painting: Painting, seconds: number): Generator<void, Canvas> {
  const { height, width } = painting
  const composition = compose(painting)
  const canvas = new Canvas(width, height)
  const tops = composition.hills.map(({ pace, top, waves }) =>
    Float32Array.from(
      { length: width },
      (_, x) =>
        height * waves.reduce((y, { count, phase, rise }) =>
          y + rise * Math.sin(2 * Math.PI * count * x / width + phase + seconds * pace), top)
    )
  )
  for (let y = 0; y < height; y++) {
    paintRow(canvas, composition, tops, y, seconds)
    if (y % rowsAtOnce === rowsAtOnce - 1) yield
  }
  yield* letter(canvas, composition.letters)
  const size = Math.max(4, Math.min(height * 0.026, width * 0.55 / widthOf(placeholderMark, 1)))
  write(canvas, placeholderMark, size, height - 2 * size, size, white, black)
  if (painting.watermark === true) writeMark(canvas)
  return canvas
}

/** Paints the moment in one go, for threads that do nothing else. */
export const paint = (painting: Painting, seconds: number): Canvas => {
  const painted = steps(painting, seconds)
  for (;;) {
    const { done, value } = painted.next()
    if (done === true) return value
  }
}

const paintRow = (
  canvas: Canvas,
  { disc, hills, sky }: Composition,
  tops: ReadonlyArray<Float32Array>,
  y: number,
  seconds: number
): void => {
  const { height, width } = canvas
  canvas.fill(y, 0, width, mix(sky[0], sky[1], Math.min(1, y / height / 0.7)))
  const shorter = Math.min(width, height)
  const centre = (disc.x + 0.03 * Math.sin(seconds * 0.4)) * width
  const [radius, glow] = [disc.radius * shorter, 2.6 * disc.radius * shorter]
  const away = y - disc.y * height
  if (Math.abs(away) < glow) {
    const reach = Math.sqrt(glow ** 2 - away ** 2)
    for (let x = Math.max(0, Math.ceil(centre - reach)); x <= Math.min(width - 1, centre + reach); x++) {
      const distance = Math.sqrt((x - centre) ** 2 + away ** 2)
      const halo = 0.55 * (1 - distance / glow) ** 2
      canvas.blend(x, y, disc.colour, Math.max(halo, Math.min(1, radius + 0.5 - distance)))
    }
  }
  for (const [at, hill] of hills.entries()) {
    const top = tops[at] as Float32Array
    const colour = mix(hill.colour, black, 0.3 * Math.max(0, y / height - hill.top))
    // what is covered whole is filled run by run
    for (let x = 0; x < width;) {
      const cover = y - (top[x] as number) + 0.5
      if (cover < 1) {
        canvas.blend(x, y, colour, cover)
        x++
        continue
      }
      const from = x
      while (x < width && y - (top[x] as number) >= 0.5) x++
      canvas.fill(y, from, x, colour)
    }
  }
}

/** Writes the words on the hills, as large as they fit. */
function* letter(canvas: Canvas, text: string): Generator<void> {
  if (text === "") return
  const { height, width } = canvas
  const least = Math.min(width, height) * 0.05
  const lines = wrap(text, Math.max(8, Math.floor(width * 0.86 / widthOf("M", least) / 1.2)))
  const longest = Math.max(...lines.map((line) => widthOf(line, 1)))
  const size = Math.min(least, width * 0.86 / longest, height * 0.4 / (lines.length * 1.6))
  if (size < 4) return
  const top = height * 0.7 - lines.length * size * 0.8
  for (const [at, line] of lines.entries()) {
    write(canvas, line, (width - widthOf(line, size)) / 2, top + at * size * 1.6, size, white, black)
    yield
  }
}

/** Marks a picture in its lower right corner as made by a machine. */
export const writeMark = (canvas: Canvas): void => {
  const { height, width } = canvas
  const size = Math.max(4, Math.min(height * 0.04, width * 0.3 / widthOf(machineMark, 1)))
  const left = width - widthOf(machineMark, size) - size
  write(canvas, machineMark, left, height - 2 * size, size, white, black)
}
