/** A picture in memory that shapes are drawn on, with smooth edges. */
import type { Colour } from "./Colour.ts"

export class Canvas {
  readonly width: number
  readonly height: number
  /** Red, green, blue and opacity of each pixel, row by row. */
  readonly data: Uint8Array<ArrayBuffer>

  /** Draws on `data` where it is given, which has four bytes for each pixel; else on black. */
  constructor(width: number, height: number, data = new Uint8Array(width * height * 4)) {
    this.width = width
    this.height = height
    this.data = data
  }

  /** Paints the pixels of a row from one column up to another. */
  fill(row: number, from: number, until: number, [red, green, blue]: Colour): void {
    const { data, width } = this
    const end = (row * width + until) * 4
    for (let at = (row * width + from) * 4; at < end; at += 4) {
      data[at] = red
      data[at + 1] = green
      data[at + 2] = blue
      data[at + 3] = 255
    }
  }

  /** Lays a colour over one pixel. `opacity` goes from 0 to 1. */
  blend(x: number, y: number, colour: Colour, opacity: number): void {
    if (opacity <= 0 || x < 0 || y < 0 || x >= this.width || y >= this.height) return
    const { data } = this
    const at = (y * this.width + x) * 4
    for (let channel = 0; channel < 3; channel++) {
      const below = data[at + channel] as number
      data[at + channel] = below + ((colour[channel] as number) - below) * opacity
    }
    data[at + 3] = Math.max(data[at + 3] as number, 255 * opacity)
  }

  /** A straight stroke with round ends. A stroke of no length is a disc. */
  stroke(x0: number, y0: number, x1: number, y1: number, radius: number, colour: Colour): void {
    const [alongX, alongY] = [x1 - x0, y1 - y0]
    const square = alongX ** 2 + alongY ** 2 || 1
    const edge = radius + 1
    const right = Math.min(this.width - 1, Math.ceil(Math.max(x0, x1) + edge))
    const bottom = Math.min(this.height - 1, Math.ceil(Math.max(y0, y1) + edge))
    for (let y = Math.max(0, Math.floor(Math.min(y0, y1) - edge)); y <= bottom; y++) {
      for (let x = Math.max(0, Math.floor(Math.min(x0, x1) - edge)); x <= right; x++) {
        const part = Math.min(1, Math.max(0, ((x - x0) * alongX + (y - y0) * alongY) / square))
        const [byX, byY] = [x - x0 - part * alongX, y - y0 - part * alongY]
        const cover = radius + 0.5 - Math.sqrt(byX * byX + byY * byY)
        if (cover > 0) this.blend(x, y, colour, Math.min(1, cover))
      }
    }
  }
}
