/** A picture in memory with smooth-edged strokes. */
import type { Colour } from "./Colour.ts"

export class Canvas {
  readonly width: number
  readonly height: number
  /** Red, green, blue and opacity of each pixel, row by row. */
  readonly data: Uint8Array<ArrayBuffer>

  /** Draws on `data` if given, which has four bytes for each pixel, else on transparent black. */
  constructor(width: number, height: number, data = new Uint8Array(width * height * 4)) {
    this.width = width
    this.height = height
    this.data = data
  }

  /** Paints the pixels of a row from one column up to another. */
  fill(row: number, from: number, until: number, [red, green, blue]: Colour): void {
    const start = (row * this.width + from) * 4
    const end = (row * this.width + until) * 4
    if (end <= start) return
    this.data.set([red, green, blue, 255], start)
    // copies the pixels that are filled already, twice as many each time
    for (let done = 4; start + done < end; done *= 2) {
      this.data.copyWithin(start + done, start, Math.min(start + done, end - done))
    }
  }

  /** Blends a colour into one pixel. `opacity`: from 0 to 1. */
  blend(x: number, y: number, colour: Colour, opacity: number): void {
    if (opacity <= 0 || x < 0 || y < 0 || x >= this.width || y >= this.height) return
    const at = (y * this.width + x) * 4
    for (let channel = 0; channel < 3; channel++) {
      const below = this.data[at + channel]!
      this.data[at + channel] = below + (colour[channel]! - below) * opacity
    }
    this.data[at + 3] = Math.max(this.data[at + 3]!, 255 * opacity)
  }

  /** Draws a straight stroke with round ends. A stroke without length is a disc. */
  stroke(x0: number, y0: number, x1: number, y1: number, radius: number, colour: Colour): void {
    const [alongX, alongY] = [x1 - x0, y1 - y0]
    const square = alongX ** 2 + alongY ** 2 || 1
    const edge = radius + 1
    const right = Math.min(this.width - 1, Math.ceil(Math.max(x0, x1) + edge))
    const bottom = Math.min(this.height - 1, Math.ceil(Math.max(y0, y1) + edge))
    for (let y = Math.max(0, Math.floor(Math.min(y0, y1) - edge)); y <= bottom; y++) {
      for (let x = Math.max(0, Math.floor(Math.min(x0, x1) - edge)); x <= right; x++) {
        const part = Math.min(1, Math.max(0, ((x - x0) * alongX + (y - y0) * alongY) / square))
        const cover = radius + 0.5 - Math.sqrt((x - x0 - part * alongX) ** 2 + (y - y0 - part * alongY) ** 2)
        this.blend(x, y, colour, Math.min(1, cover))
      }
    }
  }
}
