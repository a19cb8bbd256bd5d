/** POST /v1/video/generations: a video from a prompt, as a task to poll, since it takes longer than a client waits. */
import { Schema } from "effect"
import { EndUser, integer, ModelName, optional } from "../Fields.ts"
import type { Operation } from "../Operation.ts"
import { PictureInput } from "../PictureInput.ts"
import { LocalVideoRequest, videoDefaults } from "./LocalVideo.ts"

const Metadata = Schema.StructWithRest(
  Schema.Struct({
    negative_prompt: optional(Schema.String.check(Schema.isMaxLength(4_000)), "What the video must not show."),
    style: optional(Schema.String.check(Schema.isMaxLength(200))),
    quality_level: optional(Schema.String.check(Schema.isMaxLength(200)), "A level that the model defines.")
  }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)

/** Far more than any model makes: these bounds only keep usage finite. The model decides what it accepts. */
const maximum = { duration: 3_600, side: 16_384, fps: 240, n: 100 }

const Side = integer(1, maximum.side)

const ownDefault = (builtIn: number): string => `Default: the model's own; ${builtIn} for the built-in engine.`

export const VideoGenerationRequest = Schema.Struct({
  model: ModelName,
  prompt: Schema.NonEmptyString.check(Schema.isMaxLength(32_000)).annotateKey({
    description: "What the video should show."
  }),
  image: optional(PictureInput, "First image of the video: an http(s) URL, a data URL, or base64."),
  duration: optional(
    Schema.Finite.check(Schema.isGreaterThan(0), Schema.isLessThanOrEqualTo(maximum.duration)),
    `Seconds, within the model's bounds. ${ownDefault(videoDefaults.duration)}`
  ),
  width: optional(Side, `Pixels, within the model's bounds. ${ownDefault(videoDefaults.width)}`),
  height: optional(Side, `Pixels, within the model's bounds. ${ownDefault(videoDefaults.height)}`),
  fps: optional(integer(1, maximum.fps), `Frames per second. ${ownDefault(videoDefaults.fps)}`),
  seed: optional(
    Schema.Int,
    "With the same seed and request, a model that supports seeds returns the same video. " +
      "Each further video of a request has the next seed. Some models take -1 for a random seed."
  ),
  n: optional(
    integer(1, maximum.n),
    "How many videos to generate, at most as many as the model's `maxVideos`, 4 unless the operator sets it. Default 1."
  ),
  response_format: optional(
    Schema.NonEmptyString.check(Schema.isMaxLength(200)),
    "`url` and `mp4` ask for what the gateway always returns: a URL, and MP4 where the provider has a choice. " +
      "Providers get any other value, such as `webm`; the built-in engine rejects it."
  ),
  user: EndUser,
  metadata: optional(Metadata)
})
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

/** Media types of videos by format. */
export const videoTypes = { mp4: "video/mp4", webm: "video/webm", mov: "video/quicktime" } as const

export const VideoFormat = Schema.Literals(["mp4", "webm", "mov"])
export type VideoFormat = typeof VideoFormat.Type

const url = Schema.String.annotateKey({
  description: "URL of the video. Needs no API key; valid until `expires_at`."
})

export const VideoTaskCreated = Schema.Struct({ task_id: Schema.String, status: TaskStatus })

/** The task, as the client sees it. */
export const VideoTaskView = Schema.Struct({
  task_id: Schema.String,
  status: TaskStatus,
  progress: integer(0, 100).annotateKey({ description: "Percent, the mean of all videos." }),
  model: Schema.String,
  created: Schema.Int.annotateKey({ description: "Unix time in seconds, like the other times." }),
  completed_at: Schema.optionalKey(Schema.Int),
  expires_at: Schema.Int.annotateKey({ description: "When the task and its video expire." }),
  data: Schema.Array(Schema.Struct({ url, format: VideoFormat, metadata: VideoMetadata })).annotateKey({
    description:
      "The videos made so far, at most `n`. If the task fails or is cancelled, the videos made before remain."
  }),
  url: Schema.optionalKey(Schema.String).annotateKey({ description: "URL of the first video, as in `data`." }),
  format: Schema.optionalKey(VideoFormat).annotateKey({ description: "Format of the first video." }),
  metadata: Schema.NullOr(VideoMetadata).annotateKey({ description: "Properties of the first video." }),
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
  local: LocalVideoRequest,
  response: VideoTaskCreated,
  streams: () => false,
  kind: "task",
  task: VideoTaskView,
  description:
    "Returns a task immediately. Poll `GET /v1/video/generations/{task_id}` until its status is `completed`, then download `…/{task_id}/content`. " +
    "With `n`, `data` lists the videos and `…/content?video=1` is the second one; the task completes when all are made. " +
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
