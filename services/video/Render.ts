/** The thread that paints the frames of one video and encodes them. Its order comes as `workerData`. */
import encoding from "h264-mp4-encoder"
import { parentPort, workerData } from "node:worker_threads"
import { Canvas } from "../../shared/painter/Canvas.ts"
import { paint, type Painting } from "../../shared/painter/Painting.ts"
import * as Camera from "./Camera.ts"
import * as Mp4Times from "./Mp4Times.ts"

/** `width` and `height` are even. */
export interface RenderOrder extends Painting {
  readonly fps: number
  /** How many, at least one. */
  readonly frames: number
  /** 10, the finest, to 51. */
  readonly quantization: number
  /** Where there is one, the camera moves over it. */
  readonly picture: Pick<Canvas, "width" | "height" | "data"> | undefined
}

/** The file. */
export type Rendered = Uint8Array<ArrayBuffer>

/** 0, the smallest file, to 10, the fastest. */
const encoderSpeed = 10

/** Paints the frame at so many seconds, `along` from 0 to 1 of the whole. */
type Shoot = (seconds: number, along: number) => Uint8Array

const overPicture = (
  { height, prompt, seed, width }: RenderOrder,
  given: NonNullable<RenderOrder["picture"]>
): Shoot => {
  const picture = new Canvas(given.width, given.height, given.data)
  const move = Camera.moveOf(prompt, seed)
  const frame = new Canvas(width, height)
  return (_seconds, along) => {
    Camera.shoot(picture, move, along, frame)
    return frame.data
  }
}

const render = async (order: RenderOrder, report: (progress: number) => void): Promise<Rendered> => {
  const { fps, frames, height, picture, width } = order
  const shoot: Shoot = picture === undefined ? (seconds) => paint(order, seconds).data : overPicture(order, picture)
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
    encoder.addFrameRgba(shoot(frame / fps, frames === 1 ? 0 : frame / (frames - 1)))
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
