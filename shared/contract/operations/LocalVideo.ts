/** The limits of the built-in video engine. Ingress rejects requests beyond them, so that no task fails later. */
import { Schema } from "effect"
import { between, integer, optional } from "../Fields.ts"

export const videoDefaults = { duration: 4, width: 640, height: 360, fps: 24 } as const

/** Maximum number of pixels in all frames together: 12 seconds at 1920x1080 and 24 frames per second. */
const maximumPixels = 12 * 24 * 1920 * 1080

/** The bounds of each side of the video, in pixels. */
const minimumSide = 64
const maximumSide = 1920

/** A side in pixels. Even, because H.264 encodes colours in blocks of two. */
const Side = Schema.Int.check(
  Schema.isBetween({ minimum: minimumSide, maximum: maximumSide }),
  Schema.makeFilter((pixels) => pixels % 2 === 0, {
    expected: `an even number from ${minimumSide} to ${maximumSide}`
  })
)

interface Extent {
  readonly duration?: number | null
  readonly width?: number | null
  readonly height?: number | null
  readonly fps?: number | null
}

/** The requested length, size and frame rate; at least one frame. */
export const extentOf = (request: Extent) => {
  const duration = request.duration ?? videoDefaults.duration
  const fps = request.fps ?? videoDefaults.fps
  return {
    width: request.width ?? videoDefaults.width,
    height: request.height ?? videoDefaults.height,
    fps,
    duration,
    frames: Math.max(1, Math.round(duration * fps))
  }
}

const isBounded = Schema.makeFilter((request: Extent) => {
  const { fps, frames, height, width } = extentOf(request)
  const most = Math.floor(maximumPixels / (width * height) / fps * 10) / 10
  if (frames * width * height <= maximumPixels) return undefined
  return {
    path: ["duration"],
    issue: `must be at most ${most} seconds at ${width}x${height} and ${fps} frames per second`
  }
})

/** The fields of a video request that the engine limits more strictly than ingress does. */
export const LocalVideoRequest = Schema.Struct({
  duration: optional(between(1, 20)),
  width: optional(Side),
  height: optional(Side),
  fps: optional(integer(1, 60)),
  seed: optional(integer(0, Number.MAX_SAFE_INTEGER)),
  response_format: optional(Schema.Literals(["url", "mp4"])),
  metadata: optional(Schema.Struct({ quality_level: optional(Schema.Literals(["low", "standard", "high"])) }))
}).check(isBounded)
