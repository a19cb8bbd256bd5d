/**
 * POST /v1/video/generations: the request for a video, the task that is made of it, and what can be learned of the task.
 *
 * A video takes longer than a client waits on a socket: the answer is a task to ask for again. Clients send `null` for
 * what they leave out, so every optional field takes it.
 */
import { Schema } from "effect"
import { optional } from "./Fields.ts"
import type { Operation } from "./Operation.ts"

/** What is made where the request does not say. */
export const videoDefaults = { duration: 4, width: 640, height: 360, fps: 24 } as const

/** The most pixels in all frames of one video together: 12 seconds at 1920x1080 and 24 frames per second. */
const maximumPixels = 12 * 24 * 1920 * 1080

/** A side of the picture in pixels: H.264 codes colours by blocks of two. */
const Side = Schema.Int.check(
  Schema.isBetween({ minimum: 64, maximum: 1920 }),
  Schema.makeFilter((pixels) => pixels % 2 === 0 || "Expected an even number")
)

const Metadata = Schema.StructWithRest(
  Schema.Struct({
    /** What the video must not show. */
    negative_prompt: optional(Schema.String.check(Schema.isMaxLength(4_000))),
    style: optional(Schema.String.check(Schema.isMaxLength(200))),
    /** Which ones there are is the model's business. */
    quality_level: optional(Schema.String.check(Schema.isMaxLength(200)))
  }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)

interface Extent {
  readonly duration?: number | null
  readonly width?: number | null
  readonly height?: number | null
  readonly fps?: number | null
}

/** The length, size and rate of the video that was asked for; at least one frame. */
export const extentOf = (request: Extent) => {
  const duration = request.duration ?? videoDefaults.duration
  const fps = request.fps ?? videoDefaults.fps
  return {
    width: request.width ?? videoDefaults.width,
    height: request.height ?? videoDefaults.height,
    fps,
    duration,
    /** The duration to the nearest whole frame. */
    frames: Math.max(1, Math.round(duration * fps))
  }
}

const isBounded = Schema.makeFilter((request: Extent) => {
  const { frames, height, width } = extentOf(request)
  return frames * width * height <= maximumPixels
    ? undefined
    : { path: ["duration"], issue: `Expected at most ${maximumPixels} pixels in width * height * fps * duration` }
})

export const VideoGenerationRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  prompt: Schema.NonEmptyString.check(Schema.isMaxLength(32_000)),
  /** A picture to begin with: an http(s) URL, a data URL, or base64. */
  image: optional(Schema.NonEmptyString),
  /** Seconds. */
  duration: optional(Schema.Finite.check(Schema.isBetween({ minimum: 1, maximum: 20 }))),
  width: optional(Side),
  height: optional(Side),
  /** Frames per second. */
  fps: optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 60 }))),
  /** The same seed and prompt give the same video. */
  seed: optional(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }))),
  /** One task is one video: several are several requests. */
  n: optional(Schema.Literal(1)),
  /** The video is always fetched from an address, and always an MP4 file. */
  response_format: optional(Schema.Literals(["url", "mp4"])),
  user: optional(Schema.String),
  metadata: optional(Metadata)
}).check(isBounded)
export type VideoGenerationRequest = typeof VideoGenerationRequest.Type

/** `queued` → `in_progress` → `completed` | `failed`; `cancelled` from either of the first two. */
export const TaskStatus = Schema.Literals(["queued", "in_progress", "completed", "failed", "cancelled"])
export type TaskStatus = typeof TaskStatus.Type

export const VideoMetadata = Schema.Struct({
  /** Seconds, of whole frames. */
  duration: Schema.Finite,
  fps: Schema.Finite,
  width: Schema.Int,
  height: Schema.Int,
  /** `null` where the provider does not tell. */
  seed: Schema.NullOr(Schema.Int),
  /** What of the request could not be carried over to the provider, by its path. */
  warnings: Schema.optionalKey(Schema.Array(Schema.String))
})
export type VideoMetadata = typeof VideoMetadata.Type

export const VideoTaskCreated = Schema.Struct({ task_id: Schema.String, status: TaskStatus })

/** A task as its client sees it. */
export const VideoTaskView = Schema.Struct({
  task_id: Schema.String,
  status: TaskStatus,
  /** Percent. */
  progress: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 100 })),
  model: Schema.String,
  /** This and the other times in seconds since the epoch. */
  created: Schema.Int,
  completed_at: Schema.optionalKey(Schema.Int),
  /** When the task, and its video with it, is forgotten. */
  expires_at: Schema.Int,
  /** Where the video is, for whoever holds this address, until it expires. */
  url: Schema.optionalKey(Schema.String),
  format: Schema.optionalKey(Schema.String),
  metadata: Schema.NullOr(VideoMetadata),
  error: Schema.NullOr(Schema.Struct({
    message: Schema.String,
    type: Schema.String,
    param: Schema.NullOr(Schema.String),
    code: Schema.NullOr(Schema.String)
  }))
})
export type VideoTaskView = typeof VideoTaskView.Type

export const videoGenerations = {
  name: "video.generations",
  summary: "Make a video from a prompt, as a task to ask for again",
  paths: ["/v1/video/generations"],
  workloads: ["video"],
  dialect: "openai",
  request: VideoGenerationRequest,
  response: VideoTaskCreated,
  streams: () => false,
  kind: "task",
  task: VideoTaskView
} satisfies Operation
