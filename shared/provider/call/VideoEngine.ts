/** The interface of engines that make videos: a provider's API for long-running tasks, or the engine built into the worker. */
import { Context, type Effect } from "effect"
import type { ExactNumber } from "../../bounds/ExactJson.ts"
import type { JobError } from "../../contract/JobError.ts"
import type { VideoFormat, VideoGenerationRequest, VideoMetadata } from "../../contract/operations/VideoGenerations.ts"
import type { Endpoint } from "../transport/Endpoint.ts"

/** A client's request, whose seed has all its digits. */
export type VideoRequest = Omit<VideoGenerationRequest, "seed"> & { readonly seed?: number | ExactNumber | null }

/** A call for one video. */
export interface VideoCall {
  /** The gateway's id of the task. Also the idempotency key at providers that accept one. */
  readonly id: string
  /** The client's request, with `n` set to 1. */
  readonly request: VideoRequest
  readonly endpoint: Endpoint
}

export interface Video {
  readonly bytes: Uint8Array
  readonly format: VideoFormat
  readonly metadata: VideoMetadata
}

/** The `response_format` as a provider's own parameter, unless it asks for what the gateway returns anyway. */
export const formatParameter = ({ response_format: format }: VideoRequest) =>
  typeof format !== "string" || format === "url" || format === "mp4" ? {} : { response_format: format }

/** The paths of the request's fields that no provider's video API has. */
export const lostAtProviders = ({ metadata, user }: VideoRequest): ReadonlyArray<string> => [
  ...(typeof metadata?.quality_level === "string" ? ["metadata.quality_level"] : []),
  ...(typeof user === "string" ? ["user"] : [])
]

/** How long a provider may take to return a task's id, in milliseconds. */
export const createWithinMs = 30_000

/**
 * Makes videos as tasks. A provider's task is JSON that only its engine reads; it is stored as soon as the provider returns it, so that
 * any worker can resume it.
 */
export interface VideoEngine {
  /**
   * Submits the task once, and returns when the provider has returned its id. Must end by itself within `createWithinMs`: it is never
   * interrupted, because a task whose id is lost would be paid for but never fetched.
   */
  readonly start: (call: VideoCall) => Effect.Effect<unknown, JobError>
  /**
   * Follows the task to its end, whichever worker has started it, and reports the progress in percent. Failures are final, because the
   * engine has already retried transient ones. Interruption stops the work in this process, but not the task at the provider.
   */
  readonly follow: (
    call: VideoCall,
    task: unknown,
    report: (progress: number) => void
  ) => Effect.Effect<Video, JobError>
  /** Cancels the task at the provider. May be repeated. */
  readonly cancel: (call: VideoCall, task: unknown) => Effect.Effect<void, JobError>
}

/** The engine of the `local` protocol. */
export class LocalVideoEngine extends Context.Service<LocalVideoEngine, VideoEngine>()(
  "shared/provider/call/LocalVideoEngine"
) {}
