/** The thread that encodes the frames of one video. Its input arrives as `workerData`. */
import encoding from "h264-mp4-encoder"
import { parentPort, workerData } from "node:worker_threads"
import { Canvas } from "../../shared/painter/Canvas.ts"
import { paint, type Painting, writePlaceholderMark } from "../../shared/painter/Painting.ts"
import * as Camera from "./Camera.ts"

/** `width` and `height` are even. */
export interface RenderOrder extends Painting {
  readonly fps: number
  /** At least one. */
  readonly frames: number
  /** 10, the finest, to 51. */
  readonly quantization: number
  /** Without a picture, the thread paints a placeholder of the prompt. */
  readonly picture: Pick<Canvas, "width" | "height" | "data"> | undefined
}

/** The file. */
export type Rendered = Uint8Array<ArrayBuffer>

const render = async (order: RenderOrder, report: (progress: number) => void): Promise<Rendered> => {
  const { fps, frames, height, picture: given, prompt, quantization, seed, width } = order
  const picture = given === undefined
    ? paint({ ...order, width: Math.ceil(width * Camera.room), height: Math.ceil(height * Camera.room) })
    : new Canvas(given.width, given.height, given.data)
  const move = Camera.moveOf(prompt, seed)
  const frame = new Canvas(width, height)
  const encoder = await encoding.createH264MP4Encoder()
  encoder.width = width
  encoder.height = height
  encoder.frameRate = fps
  // 0 gives the smallest file, 10 the fastest encoding
  encoder.speed = 10
  encoder.quantizationParameter = quantization
  // players can seek to every second
  encoder.groupOfPictures = fps
  encoder.initialize()
  for (let index = 0; index < frames; index++) {
    Camera.shoot(picture, move, frames === 1 ? 0 : index / (frames - 1), frame)
    if (given === undefined) writePlaceholderMark(frame)
    encoder.addFrameRgba(frame.data)
    report(((index + 1) / frames) * 100)
  }
  encoder.finalize()
  const file = new Uint8Array(encoder.FS.readFile(encoder.outputFilename))
  encoder.delete()
  return file
}

const file = await render(workerData as RenderOrder, (progress) => parentPort?.postMessage({ progress }, []))
parentPort?.postMessage({ file }, [file.buffer])
