/** The thread that paints the frames of one video and encodes them. Its order comes as `workerData`. */
import { createCanvas, type SKRSContext2D } from "@napi-rs/canvas"
import encoding from "h264-mp4-encoder"
import { parentPort, workerData } from "node:worker_threads"
import { compose } from "../../shared/painter/Scene.ts"
import * as Camera from "./Camera.ts"
import * as Mp4Times from "./Mp4Times.ts"

export interface RenderOrder {
  /** Pixels, even. */
  readonly width: number
  readonly height: number
  readonly fps: number
  /** How many, at least one. */
  readonly frames: number
  readonly seed: number
  /** 10, the finest, to 51. */
  readonly quantization: number
  readonly prompt: string
  readonly negativePrompt: string
  /** Where there is one, the video moves over it. */
  readonly picture: Camera.Picture | undefined
}

/** The file. */
export type Rendered = Uint8Array<ArrayBuffer>

/** 0, the smallest file, to 10, the fastest. */
const encoderSpeed = 6

/** Paints the moment at so many seconds, `along` from 0 to 1 of the whole, on the whole canvas. */
type Paint = (context: SKRSContext2D, seconds: number, along: number) => void

const scene = (order: RenderOrder): Paint => {
  const { paint } = compose(order)
  return (context, seconds, along) => {
    context.save()
    Camera.closeIn(context, order, along)
    paint(context, seconds)
    context.restore()
  }
}

const render = async (order: RenderOrder, report: (progress: number) => void): Promise<Rendered> => {
  const { fps, frames, height, width } = order
  const context = createCanvas(width, height).getContext("2d")
  const paint: Paint = order.picture === undefined ? scene(order) : Camera.over(order, order.picture)

  const encoder = await encoding.createH264MP4Encoder()
  encoder.width = width
  encoder.height = height
  encoder.frameRate = fps
  encoder.speed = encoderSpeed
  encoder.quantizationParameter = order.quantization
  // a second between two places to jump to
  encoder.groupOfPictures = fps
  encoder.initialize()
  for (let frame = 0; frame < frames; frame++) {
    paint(context, frame / fps, frames === 1 ? 0 : frame / (frames - 1))
    const { buffer, byteLength, byteOffset } = context.getImageData(0, 0, width, height).data
    encoder.addFrameRgba(new Uint8Array(buffer, byteOffset, byteLength))
    report(((frame + 1) / frames) * 100)
  }
  encoder.finalize()
  const file = new Uint8Array(encoder.FS.readFile(encoder.outputFilename))
  encoder.delete()
  Mp4Times.clear(file)
  return file
}

const file = await render(workerData as RenderOrder, (progress) => parentPort?.postMessage({ progress }, []))
parentPort?.postMessage({ file }, [file.buffer])
