/** A painting as a PNG. Takes up to seconds of processor time: use `Painter`, which does this in threads of its own. */
import { createCanvas } from "@napi-rs/canvas"
import { compose, type Painting } from "./Scene.ts"

export const toPng = (painting: Painting): Uint8Array<ArrayBuffer> => {
  const canvas = createCanvas(painting.width, painting.height)
  compose(painting).paint(canvas.getContext("2d"), 0)
  return new Uint8Array(canvas.toBuffer("image/png"))
}
