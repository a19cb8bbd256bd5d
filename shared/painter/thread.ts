/** The entry of a painting thread: paints what it is sent, one picture at a time, and sends back the PNG. */
import { parentPort } from "node:worker_threads"
import { toPng } from "./Picture.ts"
import type { Painting } from "./Scene.ts"

parentPort?.on("message", (painting: Painting) => {
  const png = toPng(painting)
  parentPort?.postMessage(png, [png.buffer])
})
