/** Does one operation to a picture. Each is a pipeline of its own, so that they happen in the order of the instruction. */
import { createCanvas, GlobalFonts, type SKRSContext2D } from "@napi-rs/canvas"
import { Effect } from "effect"
import type { Blend, Matrix3x3, Sharp } from "sharp"
import { sharp } from "../../shared/files/PixelFormats.ts"
import type { Size } from "../../shared/contract/ImageGenerations.ts"
import type { InternalError } from "../../shared/contract/JobError.ts"
import { widthOf, write } from "../../shared/painter/Lettering.ts"
import type { Operation, Place, Region } from "./Instruction.ts"
import { open, type Pixels, take } from "./Pixels.ts"

/** Paints a prompt as a PNG of this size: over nothing, or as a whole picture. */
export type Paint = (prompt: string, size: Size, overlay: boolean) => Effect.Effect<Uint8Array, InternalError>

const longestSide = 4096

const within = (pixels: number): number => Math.min(longestSide, Math.max(1, Math.round(pixels)))

const transparent = { r: 0, g: 0, b: 0, alpha: 0 }

/** Not sharp's own `grayscale`, which leaves a single channel. */
const luma: [number, number, number] = [0.299, 0.587, 0.114]
const gray: Matrix3x3 = [luma, luma, luma]

const sepia: Matrix3x3 = [[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]]

export const apply = (pixels: Pixels, operation: Operation, paint: Paint): Effect.Effect<Pixels, InternalError> => {
  const { height, width } = pixels
  const image = open(pixels)
  switch (operation.kind) {
    case "grayscale":
      return take(image.recomb(gray))
    case "sepia":
      return take(image.recomb(sepia))
    case "invert":
      return take(image.negate({ alpha: false }))
    case "blur":
      return take(image.blur(operation.radius))
    case "sharpen":
      return take(image.sharpen({ sigma: operation.strength }))
    case "rotate":
      return Effect.flatMap(take(image.rotate(operation.degrees, { background: transparent })), fit)
    case "flip":
      return take(operation.axis === "horizontal" ? image.flop() : image.flip())
    case "scale":
      return take(image.resize(within(width * operation.factor), within(height * operation.factor), { fit: "fill" }))
    case "resize":
      return take(image.resize(operation.width, operation.height, { fit: "fill" }))
    case "cropTo":
      return extract(image, pixels, Math.min(operation.width, width), Math.min(operation.height, height))
    case "square":
      return extract(image, pixels, Math.min(width, height), Math.min(width, height))
    case "cropPart":
      return cropPart(image, pixels, operation.region, operation.share)
    case "brightness":
      return take(image.linear([operation.factor, operation.factor, operation.factor, 1], [0, 0, 0, 0]))
    case "contrast": {
      const offset = 128 * (1 - operation.factor)
      return take(image.linear([operation.factor, operation.factor, operation.factor, 1], [offset, offset, offset, 0]))
    }
    case "saturation":
      return take(image.modulate({ saturation: operation.factor }))
    case "hue":
      return take(image.modulate({ hue: operation.degrees }))
    case "tint":
      return tint(image, pixels, operation.colour, operation.strength)
    case "pixelate":
      return pixelate(image, pixels, operation.blocks)
    case "posterize":
      return Effect.flatMap(
        Effect.promise(() => image.png({ palette: true, colours: operation.colours, dither: 0 }).toBuffer()),
        (png) => take(sharp(png))
      )
    case "sketch":
      return sketch(image)
    case "vignette":
      return laid(image, drawn(256, 256, drawVignette), pixels)
    case "circle":
      return Effect.flatMap(
        extract(image, pixels, Math.min(width, height), Math.min(width, height)),
        (square) => kept(square, 1)
      )
    case "rounded":
      return kept(pixels, 0.16)
    case "border":
      return border(image, pixels, operation.pixels, operation.colour)
    case "text":
      return writeOn(image, pixels, operation)
    case "paintOver":
      return Effect.flatMap(
        paint(operation.prompt, pixels, true),
        (input) => take(image.composite([{ input: Buffer.from(input) }]))
      )
    case "grade":
      return Effect.flatMap(paint(operation.prompt, pixels, false), (png) => grade(image, png))
  }
}

/** A turn by an odd angle makes the picture larger: not beyond the longest side. */
const fit = (pixels: Pixels): Effect.Effect<Pixels, InternalError> =>
  Math.max(pixels.width, pixels.height) <= longestSide
    ? Effect.succeed(pixels)
    : take(open(pixels).resize(longestSide, longestSide, { fit: "inside" }))

const extract = (image: Sharp, { height, width }: Pixels, wide: number, tall: number) =>
  take(image.extract({
    left: Math.floor((width - wide) / 2),
    top: Math.floor((height - tall) / 2),
    width: wide,
    height: tall
  }))

const cropPart = (image: Sharp, { height, width }: Pixels, region: Region, share: number) => {
  const isWide = region === "left" || region === "right" || region === "centre"
  const isTall = region === "top" || region === "bottom" || region === "centre"
  const wide = isWide ? within(width * share) : width
  const tall = isTall ? within(height * share) : height
  const left = region === "right" ? width - wide : region === "centre" ? Math.floor((width - wide) / 2) : 0
  const top = region === "bottom" ? height - tall : region === "centre" ? Math.floor((height - tall) / 2) : 0
  return take(image.extract({ left, top, width: wide, height: tall }))
}

/** A sheet of one colour, as opaque as the tint is strong, where the picture is not transparent. */
const tint = (image: Sharp, { height, width }: Pixels, colour: string, strength: number) => {
  const background = { ...rgb(colour), alpha: strength }
  return take(image.composite([{ input: { create: { width, height, channels: 4, background } }, blend: "atop" }]))
}

const rgb = (colour: string) => {
  const value = Number.parseInt(colour.slice(1), 16)
  return { r: value >> 16, g: (value >> 8) & 255, b: value & 255 }
}

const pixelate = Effect.fnUntraced(function*(image: Sharp, { height, width }: Pixels, blocks: number) {
  const block = Math.max(2, Math.min(width, height) / blocks)
  const coarse = yield* take(
    image.resize(within(width / block), within(height / block), { fit: "fill", kernel: "cubic" })
  )
  return yield* take(open(coarse).resize(width, height, { fit: "fill", kernel: "nearest" }))
})

const sketch = Effect.fnUntraced(function*(image: Sharp) {
  const pale = yield* take(image.recomb(gray).blur(0.8))
  // without the opacity, which a kernel of sum 0 would make nothing of
  const { data, info } = yield* Effect.promise(() =>
    open(pale).flatten({ background: "#ffffff" }).removeAlpha().raw().toBuffer({ resolveWithObject: true })
  )
  const edges = sharp(data, { raw: { width: info.width, height: info.height, channels: 3 } })
    .convolve({ width: 3, height: 3, kernel: [-1, -1, -1, -1, 8, -1, -1, -1, -1], scale: 1 })
  const strong = yield* take(edges)
  return yield* take(open(strong).linear([-6, -6, -6, 1], [255, 255, 255, 0]))
})

/** The colours and the light of the one picture, half covered by those of the other, blurred beyond recognition. */
const grade = Effect.fnUntraced(function*(image: Sharp, png: Uint8Array) {
  const veil = yield* take(sharp(png).blur(60).ensureAlpha(0.5))
  return yield* take(
    image.composite([{
      input: veil.data,
      raw: { width: veil.width, height: veil.height, channels: 4 },
      blend: "soft-light"
    }])
  )
})

/** A drawing on a canvas of this size, as plain pixels. Only for small ones: reading them back is not free. */
const drawn = (width: number, height: number, draw: (context: SKRSContext2D) => void): Pixels => {
  const context = createCanvas(width, height).getContext("2d")
  draw(context)
  const { data } = context.getImageData(0, 0, width, height)
  return { data: Buffer.from(data.buffer, data.byteOffset, data.byteLength), width, height }
}

const drawVignette = (context: SKRSContext2D): void => {
  const shade = context.createRadialGradient(128, 128, 60, 128, 128, 180)
  shade.addColorStop(0, "rgba(0,0,0,0)")
  shade.addColorStop(1, "rgba(0,0,0,0.78)")
  context.fillStyle = shade
  context.fillRect(0, 0, 256, 256)
}

const drawCorners = (radius: number) => (context: SKRSContext2D): void => {
  context.beginPath()
  context.roundRect(0, 0, 512, 512, radius * 256)
  context.fill()
}

/** A drawing, stretched over the whole picture and laid on it. */
const laid = Effect.fnUntraced(function*(
  image: Sharp,
  drawing: Pixels,
  { height, width }: Pixels,
  blend: Blend = "over"
) {
  const { data } = yield* take(open(drawing).resize(width, height, { fit: "fill" }))
  return yield* take(image.composite([{ input: data, raw: { width, height, channels: 4 }, blend }]))
})

/** What lies within rounded corners; the rest becomes transparent. */
const kept = (pixels: Pixels, radius: number) =>
  laid(open(pixels), drawn(512, 512, drawCorners(radius)), pixels, "dest-in")

const border = (image: Sharp, { height, width }: Pixels, pixels: number, colour: string) => {
  const usual = Math.max(2, Math.round(Math.min(width, height) * 0.04))
  const edge = pixels > 0 ? pixels : usual
  return take(
    image.extend({ top: edge, bottom: edge, left: edge, right: edge, background: { ...rgb(colour), alpha: 1 } })
  )
}

/** Whether this machine has fonts to write any script with; if not, letters are drawn by strokes. */
const hasFonts = GlobalFonts.families.length > 0

const positions: Record<Place, number> = { top: 0.06, middle: 0.5, bottom: 0.94 }

const writeOn = (
  image: Sharp,
  { height, width }: Pixels,
  { colour, place, text }: { readonly text: string; readonly place: Place; readonly colour: string }
) => {
  // as large as it can be within a tenth of the height and nine tenths of the width
  const tall = Math.max(6, Math.round(height * 0.1))
  const unit = hasFonts ? fontWidth(text) : widthOf(text, 1)
  const size = Math.max(5, Math.min(tall, (width * 0.9) / Math.max(unit, 0.1)))
  const box = { width: Math.min(width, Math.ceil(unit * size + size)), height: Math.min(height, Math.ceil(size * 1.7)) }
  const label = drawn(box.width, box.height, (context) => {
    const shade = luminance(colour) > 110 ? "rgba(0,0,0,0.7)" : "rgba(255,255,255,0.7)"
    const [x, y] = [size / 2, size * 0.35]
    if (hasFonts) {
      context.font = fontOf(size)
      context.textBaseline = "top"
      context.lineJoin = "round"
      context.lineWidth = size * 0.16
      context.strokeStyle = shade
      context.strokeText(text, x, y)
      context.fillStyle = colour
      context.fillText(text, x, y)
      return
    }
    context.strokeStyle = shade
    write(context, text, x + size * 0.05, y + size * 0.05, size)
    context.strokeStyle = colour
    write(context, text, x, y, size)
  })
  return take(image.composite([{
    input: label.data,
    raw: { width: label.width, height: label.height, channels: 4 },
    left: Math.floor((width - label.width) / 2),
    top: Math.round((height - label.height) * positions[place])
  }]))
}

const fontOf = (size: number): string => `bold ${size}px sans-serif`

/** How wide a text is in parts of its height. */
const fontWidth = (text: string): number => {
  const context = createCanvas(1, 1).getContext("2d")
  context.font = fontOf(100)
  return context.measureText(text).width / 100
}

const luminance = (colour: string): number => {
  const { b, g, r } = rgb(colour)
  return r * 0.3 + g * 0.59 + b * 0.11
}
