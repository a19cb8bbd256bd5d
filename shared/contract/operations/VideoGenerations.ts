/** POST /v1/video/generations: a video from a prompt, as a task to poll, since it takes longer than a client waits. */
import { Schema } from "effect"
import { between, EndUser, integer, ModelName, optional } from "../Fields.ts"
import type { Operation } from "../Operation.ts"

export const videoDefaults = { duration: 4, width: 640, height: 360, fps: 24 } as const

/** The most pixels in all frames together: 12 seconds at 1920x1080 and 24 frames per second. */
const maximumPixels = 12 * 24 * 1920 * 1080

/** The bounds of each side of the video, in pixels. */
const minimumSide = 64
const maximumSide = 1920

/** In pixels, even: H.264 encodes colours in blocks of two. */
const Side = Schema.Int.check(
  Schema.isBetween({ minimum: minimumSide, maximum: maximumSide }),
  Schema.makeFilter((pixels) => pixels % 2 === 0, {
    expected: `an even number from ${minimumSide} to ${maximumSide}`,
    toJsonSchema: () => ({ multipleOf: 2 })
  })
)

const Metadata = Schema.StructWithRest(
  Schema.Struct({
    negative_prompt: optional(Schema.String.check(Schema.isMaxLength(4_000)), "What the video must not show."),
    style: optional(Schema.String.check(Schema.isMaxLength(200))),
    quality_level: optional(Schema.String.check(Schema.isMaxLength(200)), "A level that the model defines.")
  }),
  [Schema.Record(Schema.String, Schema.Unknown)]
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

export const VideoGenerationRequest = Schema.Struct({
  model: ModelName,
  prompt: Schema.NonEmptyString.check(Schema.isMaxLength(32_000)).annotateKey({
    description: "What the video should show."
  }),
  image: optional(Schema.NonEmptyString, "First image of the video: an http(s) URL, a data URL, or base64."),
  duration: optional(between(1, 20)).annotateKey({
    description: `Seconds. Default ${videoDefaults.duration}. At most ` +
      `${maximumPixels.toLocaleString("en")} pixels in all frames together: duration × fps × width × height.`
  }),
  width: optional(Side, "Pixels, an even number. Default 640."),
  height: optional(Side, "Pixels, an even number. Default 360."),
  fps: optional(integer(1, 60), "Frames per second. Default 24."),
  seed: optional(
    integer(0, Number.MAX_SAFE_INTEGER),
    "With the same seed and request, a model that supports seeds returns the same video."
  ),
  n: optional(Schema.Literal(1), "A task generates one video. Send several requests for several videos."),
  response_format: optional(Schema.Literals(["url", "mp4"]), "The answer is always a URL to an MP4 file."),
  user: EndUser,
  metadata: optional(Metadata)
}).check(isBounded)
export type VideoGenerationRequest = typeof VideoGenerationRequest.Type

/** `queued` → `in_progress` → `completed` | `failed`; `cancelled` from either of the first two. */
export const TaskStatus = Schema.Literals(["queued", "in_progress", "completed", "failed", "cancelled"])
export type TaskStatus = typeof TaskStatus.Type

export const VideoMetadata = Schema.Struct({
  duration: Schema.Finite.annotateKey({ description: "Seconds, in whole frames." }),
  fps: Schema.Finite,
  width: Schema.Int,
  height: Schema.Int,
  seed: Schema.NullOr(Schema.Int).annotateKey({ description: "`null` if the provider does not report it." }),
  warnings: Schema.optionalKey(Schema.Array(Schema.String)).annotateKey({
    description: "Fields of the request that the provider does not support, by path."
  })
})
export type VideoMetadata = typeof VideoMetadata.Type

export const VideoTaskCreated = Schema.Struct({ task_id: Schema.String, status: TaskStatus })

/** The task, as the client sees it. */
export const VideoTaskView = Schema.Struct({
  task_id: Schema.String,
  status: TaskStatus,
  progress: integer(0, 100).annotateKey({ description: "Percent." }),
  model: Schema.String,
  created: Schema.Int.annotateKey({ description: "Unix time in seconds, like the other times." }),
  completed_at: Schema.optionalKey(Schema.Int),
  expires_at: Schema.Int.annotateKey({ description: "When the task and its video expire." }),
  url: Schema.optionalKey(Schema.String).annotateKey({
    description: "URL of the video. Needs no API key; valid until `expires_at`."
  }),
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
  summary: "Generate a video from a prompt, as a task to poll",
  paths: ["/v1/video/generations"],
  workloads: ["video"],
  dialect: "openai",
  request: VideoGenerationRequest,
  response: VideoTaskCreated,
  streams: () => false,
  kind: "task",
  task: VideoTaskView,
  description:
    "Returns a task immediately. Poll `GET /v1/video/generations/{task_id}` until its status is `completed`, then download `…/{task_id}/content`. " +
    "With an `idempotency-key`, repeating the same request creates only one task.",
  examples: {
    text: {
      summary: "A video from a text",
      model: "local-video",
      body: { prompt: "Waves at sunset", duration: 1, width: 128, height: 72, fps: 4 },
      answer: { task_id: "task_10p1BSzrov2PDe4XZfLWPh5fYLyBmODm", status: "queued" }
    },
    settings: {
      summary: "With model-specific settings",
      model: "local-video",
      body: {
        prompt: "Waves at sunset",
        duration: 1,
        width: 128,
        height: 72,
        fps: 4,
        seed: 7,
        metadata: { negative_prompt: "people", style: "watercolour" }
      }
    }
  }
} satisfies Operation
