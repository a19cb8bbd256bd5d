/** The result in the record of a video's task, which workers write and ingress shows. */
import { Schema } from "effect"
import { VideoFormat, VideoMetadata } from "../contract/operations/VideoGenerations.ts"

export const VideoResult = Schema.Struct({
  format: VideoFormat,
  /** Bytes. */
  size: Schema.Int,
  metadata: VideoMetadata
})
export type VideoResult = typeof VideoResult.Type

/** The result of a task that has completed; `None` for any other. */
export const videoResult = Schema.decodeUnknownOption(VideoResult)
