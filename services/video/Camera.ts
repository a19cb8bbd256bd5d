/** How the camera moves. Bits of the seed decide: in or out, to which side, up or down. */
import { createCanvas, type SKRSContext2D } from "@napi-rs/canvas"

/** Raw pixels, four bytes each: red, green, blue, opacity. */
export interface Picture {
  readonly width: number
  readonly height: number
  readonly pixels: Uint8Array
}

/** How much larger such a picture is than the frame that moves over it. */
export const room = 1.25

interface Shot {
  readonly width: number
  readonly height: number
  readonly seed: number
}

const bit = (seed: number, index: number): boolean => Math.floor(seed / 2 ** index) % 2 === 1

/** How much of a scene the camera leaves out at its nearest. */
const closeness = 0.08

/** Sets the context so that what is painted on the whole canvas is seen from nearer and nearer, or less and less so. */
export const closeIn = (context: SKRSContext2D, { height, seed, width }: Shot, along: number): void => {
  const scale = 1 + closeness * (bit(seed, 0) ? 1 - along : along)
  // the edges stay outside of the frame
  const slack = (scale - 1) / 2
  context.translate(-width * slack * (bit(seed, 1) ? 2 : 0), -height * slack)
  context.scale(scale, scale)
}

/** Moves over a still picture, larger than the frame, at a constant pace. */
export const over = ({ height, seed, width }: Shot, picture: Picture) => {
  const still = createCanvas(picture.width, picture.height)
  const stillContext = still.getContext("2d")
  const image = stillContext.createImageData(picture.width, picture.height)
  image.data.set(picture.pixels)
  stillContext.putImageData(image, 0, 0)

  return (context: SKRSContext2D, _seconds: number, along: number): void => {
    // all of the picture, or a part of it of the size of the frame
    const nearness = bit(seed, 0) ? along : 1 - along
    const share = 1 - (1 - 1 / room) * nearness
    const seenWidth = picture.width * share
    const seenHeight = picture.height * share
    const x = (picture.width - seenWidth) * (bit(seed, 1) ? along : 1 - along)
    const y = (picture.height - seenHeight) * (bit(seed, 2) ? along : 1 - along)
    context.imageSmoothingQuality = "high"
    context.drawImage(still, x, y, seenWidth, seenHeight, 0, 0, width, height)
  }
}
