/**
 * Composes a placeholder picture from a prompt: a sky, a disc and hills in the colours that the prompt's words name or suggest, the
 * words themselves, and a mark that says that it is a placeholder. The same prompt and seed always give the same picture.
 */
import { hash } from "node:crypto"
import { Canvas } from "./Canvas.ts"
import { black, type Colour, colourOf, fromHue, mix, white } from "./Colour.ts"
import { widthOf, wrap, writable, write } from "./Lettering.ts"

export interface Painting {
  readonly prompt: string
  /** The picture leaves out these words and the colours they name. */
  readonly negativePrompt: string
  /** In pixels. */
  readonly width: number
  readonly height: number
  readonly seed: number
}

/** Maximum number of letters of the prompt that are written. */
const mostLetters = 90

/** The number of rows between two pauses: at most a few milliseconds of work. */
const rowsAtOnce = 64

const wordsOf = (text: string): ReadonlyArray<string> => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []

/** The words of the prompt without those of the negative prompt. */
const wantedOf = ({ negativePrompt, prompt }: Pick<Painting, "prompt" | "negativePrompt">): ReadonlyArray<string> => {
  const unwanted = new Set(wordsOf(negativePrompt))
  return prompt.slice(0, 4_000).split(/\s+/u).filter((word) => !wordsOf(word).some((part) => unwanted.has(part)))
}

const lettersOf = (wanted: ReadonlyArray<string>): string => {
  const letters = writable(wanted.join(" "))
  return letters.length <= mostLetters ? letters : `${letters.slice(0, mostLetters).replace(/ \S*$/u, "")}...`
}

/** Describes the picture for the client. */
export const describe = (painting: Pick<Painting, "prompt" | "negativePrompt">): string => {
  const letters = lettersOf(wantedOf(painting)).toLowerCase()
  const words = letters === "" ? "without words" : `that bears the words “${letters}”`
  return `A placeholder by the built-in painter, which is not a model: a landscape ${words}`
}

/** Paints the picture, without its mark. Yields when other work can run. */
export function* steps(painting: Painting): Generator<void, Canvas> {
  const { height, seed, width } = painting
  const wanted = wantedOf(painting)
  // pseudorandom numbers that depend only on seed and words
  const bytes = hash("sha512", `${seed} ${wanted.join(" ")}`, "buffer")
  let taken = 0
  const between = (low: number, high: number): number => low + (high - low) * bytes.readUInt8(taken++) / 255
  const hue = between(0, 360)
  const colours = wanted.flatMap(wordsOf).map(colourOf).filter((colour) => colour !== undefined)
  const ground = colours[0] ?? fromHue(hue)
  const air = colours[1] ?? (colours.length > 0 ? mix(ground, white, 0.25) : fromHue(hue + between(90, 200)))
  const light = mix(colours[2] ?? mix(air, [255, 214, 130], 0.65), white, 0.45)
  const [above, below] = [mix(air, black, between(0.05, 0.35)), mix(air, white, between(0.3, 0.55))]
  const hills = Array.from({ length: 4 }, (_, at) => {
    const [rise, count, phase] = [between(0.03, 0.1) * height, between(0.6, 2.4), between(0, 2 * Math.PI)]
    const top = (0.5 + at * 0.12 + between(-0.03, 0.03)) * height
    return {
      colour: mix(mix(ground, air, 0.45 - at * 0.15), black, 0.08 + at * 0.14),
      tops: Float32Array.from(
        { length: width },
        (_, x) => top + rise * Math.sin(2 * Math.PI * count * x / width + phase)
      )
    }
  })

  const canvas = new Canvas(width, height)
  for (let y = 0; y < height; y++) {
    canvas.fill(y, 0, width, mix(above, below, Math.min(1, y / height / 0.7)))
    if (y % rowsAtOnce === rowsAtOnce - 1) yield
  }
  const [x, y] = [between(0.2, 0.8) * width, between(0.16, 0.34) * height]
  canvas.stroke(x, y, x, y, between(0.08, 0.14) * Math.min(width, height), light)
  for (let y = Math.floor(height * 0.3); y < height; y++) {
    for (const { colour, tops } of hills) paintRow(canvas, y, colour, tops)
    if (y % rowsAtOnce === rowsAtOnce - 1) yield
  }
  yield* letter(canvas, lettersOf(wanted))
  return canvas
}

/** Paints what is below the hill's top: run by run, with smooth edges. */
const paintRow = (canvas: Canvas, y: number, colour: Colour, tops: Float32Array): void => {
  for (let x = 0; x < tops.length; x++) {
    const from = x
    while (x < tops.length && y - tops[x]! >= 0.5) x++
    canvas.fill(y, from, x, colour)
    if (x < tops.length) canvas.blend(x, y, colour, y - tops[x]! + 0.5)
  }
}

/** Writes the words on the hills, as large as possible. */
function* letter(canvas: Canvas, text: string): Generator<void> {
  const { height, width } = canvas
  const least = Math.min(width, height) * 0.05
  const lines = wrap(text, Math.max(8, Math.floor(width * 0.86 / widthOf("M", least) / 1.2)))
  const longest = Math.max(...lines.map((line) => widthOf(line, 1)))
  const size = Math.min(least, width * 0.86 / longest, height * 0.4 / (lines.length * 1.6))
  if (size < 4) return
  const top = height * 0.7 - lines.length * size * 0.8
  for (const [at, line] of lines.entries()) {
    write(canvas, line, (width - widthOf(line, size)) / 2, top + at * size * 1.6, size)
    yield
  }
}

/** Paints the picture without a pause, for threads that do nothing else. */
export const paint = (painting: Painting): Canvas => {
  const painted = steps(painting)
  let step = painted.next()
  while (step.done !== true) step = painted.next()
  return step.value
}

/** Makes a function that writes a mark in a lower corner, at most as large as these shares of the picture's height and width. */
const markWriter =
  (mark: string, corner: "left" | "right", ofHeight: number, ofWidth: number) => (canvas: Canvas): void => {
    const { height, width } = canvas
    const size = Math.max(4, Math.min(height * ofHeight, width * ofWidth / widthOf(mark, 1)))
    write(canvas, mark, corner === "left" ? size : width - widthOf(mark, size) - size, height - 2 * size, size)
  }
export const writePlaceholderMark = markWriter("BUILT-IN PLACEHOLDER, NO MODEL", "left", 0.026, 0.55)
export const writeMachineMark = markWriter("AI GENERATED", "right", 0.04, 0.3)
