/** POST /v1/video/generations: a video from a prompt. The response is a task to poll, since a video takes longer than a client waits. */
import { Schema } from "effect"
import { EndUser, field, integer, ModelName, optional, Seed } from "../Fields.ts"
import { type Operation, TaskStatus } from "../Operation.ts"
import { PictureInput } from "../PictureInput.ts"
import { LocalVideoRequest, videoDefaults } from "./LocalVideo.ts"

const Metadata = Schema.StructWithRest(
  Schema.Struct({
    negative_prompt: optional(Schema.String.check(Schema.isMaxLength(4_000)), "What the video must not show."),
    style: optional(Schema.String.check(Schema.isMaxLength(200)), "How the video looks, such as `watercolour`."),
    quality_level: optional(Schema.String.check(Schema.isMaxLength(200)), "A level that the model defines.")
  }),
  [Schema.Record(Schema.String, Schema.Unknown)]
)

/** Bounds far above what any model makes, which only keep usage finite. The model decides what it accepts. */
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
    Seed,
    "With the same seed and request, a model that supports seeds returns the same video. " +
      "Each further video of a request has the next seed. Some models take -1 for a random seed."
  ),
  n: optional(
    integer(1, maximum.n),
    "How many videos to generate, at most as many as the model's `maxVideos`, 4 unless the operator sets it.",
    1
  ),
  response_format: optional(
    Schema.NonEmptyString.check(Schema.isMaxLength(200)),
    "`url` and `mp4` ask for what the gateway always returns: a URL, and MP4 where the provider has a choice. " +
      "Providers get any other value, such as `webm`; the built-in engine rejects it."
  ),
  user: EndUser,
  metadata: optional(
    Metadata,
    "Further settings of the model; a provider gets unknown ones unchanged, and the built-in engine ignores them."
  )
})
export type VideoGenerationRequest = typeof VideoGenerationRequest.Type

export const VideoMetadata = Schema.Struct({
  duration: field(Schema.Finite, "Seconds, in whole frames."),
  fps: field(Schema.Finite, "Frames per second."),
  width: field(Schema.Int, "Pixels."),
  height: field(Schema.Int, "Pixels."),
  seed: field(
    Schema.NullOr(Schema.Int),
    "Makes the same video again; `null` if the provider does not report it, or beyond 2^53."
  ),
  warnings: field(
    Schema.optionalKey(Schema.Array(Schema.String)),
    "Fields of the request that have no effect, by path. Beyond 20 they are only counted."
  )
})
export type VideoMetadata = typeof VideoMetadata.Type

/** Media types of videos by format. */
export const videoTypes = { mp4: "video/mp4", webm: "video/webm", mov: "video/quicktime" } as const

export const VideoFormat = Schema.Literals(["mp4", "webm", "mov"])
export type VideoFormat = typeof VideoFormat.Type

const url = field(Schema.String, "URL of the video. Needs no API key; valid until `expires_at`.")
const format = field(VideoFormat, "Container of the video.")
const metadata = field(VideoMetadata, "Properties of the video.")

const identity = {
  task_id: field(Schema.String, "Names the task in the paths that poll, cancel and download it."),
  status: field(TaskStatus, "A task ends as `completed`, `failed` or `cancelled`.")
}

export const VideoTaskCreated = Schema.Struct(identity)

/** The task, as the client sees it. */
export const VideoTaskView = Schema.Struct({
  ...identity,
  progress: field(integer(0, 100), "Percent, the mean of all videos."),
  model: field(Schema.String, "Model that the request named."),
  created: field(Schema.Int, "When the task was created: Unix time in seconds, like the other times."),
  completed_at: field(Schema.optionalKey(Schema.Int), "When the task ended."),
  expires_at: field(Schema.Int, "When the task and its video expire."),
  data: field(
    Schema.Array(Schema.Struct({ url, format, metadata })),
    "The videos made so far, at most `n`. If the task fails or is cancelled, the videos made before remain."
  ),
  url: field(Schema.optionalKey(Schema.String), "URL of the first video, as in `data`."),
  format: field(Schema.optionalKey(VideoFormat), "Container of the first video."),
  metadata: field(Schema.NullOr(VideoMetadata), "Properties of the first video; `null` until it is made."),
  error: field(
    Schema.NullOr(Schema.Struct({
      message: field(Schema.String, "What is wrong and what to do, for people."),
      type: field(Schema.String, "The kind of error."),
      param: field(Schema.NullOr(Schema.String), "The path of the wrong field, if there is one."),
      code: field(Schema.NullOr(Schema.String), "The error code, for programs.")
    })),
    "Why the task failed; `null` if it did not."
  )
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
    "Returns a task immediately. Poll `GET /v1/video/generations/{task_id}` until its status is `completed`, then download " +
    "`…/{task_id}/content`. " +
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
