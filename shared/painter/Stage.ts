/** What the elements of a picture are painted on, and how an element is described. */
import type { SKRSContext2D } from "@napi-rs/canvas"
import type { Chance } from "./Chance.ts"
import type { Mood } from "./Mood.ts"

export interface Stage {
  readonly context: SKRSContext2D
  /** In pixels. */
  readonly width: number
  readonly height: number
  /** A thousandth of the shorter side: what lengths that do not follow the canvas are measured in. */
  readonly unit: number
  /** Where sky and earth meet, in pixels from above. */
  readonly horizon: number
  readonly mood: Mood
  /** Where sun or moon stand. */
  readonly light: { readonly x: number; readonly y: number }
  /** The moment of an animation. A still shows second 0. */
  readonly seconds: number
  readonly has: (element: string) => boolean
  /** Of the element that is being painted: the same whatever else the picture holds. */
  readonly chance: Chance
}

export interface Element {
  /** Its name in descriptions: `mountains`. */
  readonly name: string
  /** The words that ask for it, in lower case and the singular. */
  readonly words: ReadonlyArray<string>
  /** What is behind is painted first. */
  readonly depth: number
  /**
   * `sky`, `subject` and `weather` leave the ground open; `ground` and `water` cover it. A `subject` stands out: with
   * little else in the picture it grows.
   */
  readonly kind: "sky" | "ground" | "water" | "subject" | "weather"
  /** Elements that go well with it, for prompts that may be extended. */
  readonly companions?: ReadonlyArray<string>
  readonly paint: (stage: Stage) => void
}

/** Fills the band from a curve down to the bottom of the canvas. */
export const fillBelow = (
  { context, height, width }: Stage,
  top: (x: number) => number,
  fill: string | CanvasGradient
): void => {
  const step = Math.max(1, width / 256)
  context.beginPath()
  context.moveTo(0, height)
  for (let x = 0; x <= width + step; x += step) context.lineTo(x, top(x / width))
  context.lineTo(width, height)
  context.closePath()
  context.fillStyle = fill
  context.fill()
}

type CanvasGradient = ReturnType<SKRSContext2D["createLinearGradient"]>

/** From above to below. */
export const fade = (
  { context }: Stage,
  top: number,
  bottom: number,
  colours: ReadonlyArray<string>
): CanvasGradient => {
  const gradient = context.createLinearGradient(0, top, 0, bottom)
  colours.forEach((colour, at) => gradient.addColorStop(at / Math.max(1, colours.length - 1), colour))
  return gradient
}

/** Around a point, from the middle outwards. */
export const glow = (
  { context }: Stage,
  x: number,
  y: number,
  radius: number,
  colours: ReadonlyArray<string>
): CanvasGradient => {
  const gradient = context.createRadialGradient(x, y, 0, x, y, radius)
  colours.forEach((colour, at) => gradient.addColorStop(at / Math.max(1, colours.length - 1), colour))
  return gradient
}

export const disc = ({ context }: Stage, x: number, y: number, radius: number, fill: string | CanvasGradient): void => {
  context.beginPath()
  context.arc(x, y, Math.max(0, radius), 0, Math.PI * 2)
  context.fillStyle = fill
  context.fill()
}

export const shape = (
  { context }: Stage,
  fill: string | CanvasGradient,
  ...points: ReadonlyArray<readonly [number, number]>
): void => {
  context.beginPath()
  points.forEach(([x, y], at) => at === 0 ? context.moveTo(x, y) : context.lineTo(x, y))
  context.closePath()
  context.fillStyle = fill
  context.fill()
}
