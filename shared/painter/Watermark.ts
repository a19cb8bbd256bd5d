/** The mark that says that a picture was made by a machine. */
import type { SKRSContext2D } from "@napi-rs/canvas"
import { widthOf, write } from "./Lettering.ts"

const text = "AI GENERATED"

/** Draws the mark into the lower right corner of a canvas of that size: readable on dark and on bright ground. */
export const drawWatermark = (context: SKRSContext2D, width: number, height: number): void => {
  // as wide as a third of the picture, but not higher than a tenth
  const letters = Math.max(3, Math.min(width * 0.3 / widthOf(text, 1), height * 0.05))
  const [wide, tall] = [widthOf(text, letters) + letters * 3.1, letters * 2]
  const [x, y] = [width - wide - letters * 0.8, height - tall - letters * 0.8]
  context.save()
  context.beginPath()
  context.roundRect(x, y, wide, tall, tall / 2)
  context.fillStyle = "rgba(12,14,20,0.62)"
  context.fill()
  context.lineWidth = Math.max(1, letters * 0.08)
  context.strokeStyle = "rgba(255,255,255,0.75)"
  context.stroke()
  const [sparkX, sparkY, spark] = [x + letters * 1.15, y + tall / 2, letters * 0.6]
  context.beginPath()
  for (let point = 0; point < 8; point++) {
    const away = point % 2 === 0 ? spark : spark * 0.3
    context.lineTo(sparkX + Math.cos(point * Math.PI / 4) * away, sparkY + Math.sin(point * Math.PI / 4) * away)
  }
  context.closePath()
  context.fillStyle = "#ffffff"
  context.fill()
  context.strokeStyle = "#ffffff"
  write(context, text, x + letters * 2.2, y + letters * 0.5, letters)
  context.restore()
}
