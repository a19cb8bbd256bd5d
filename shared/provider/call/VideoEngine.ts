/** What makes videos: a provider's API for long-running tasks, or the engine built into the worker. */
import { Context, type Effect } from "effect"
import type { JobError } from "../../contract/JobError.ts"
import type { VideoGenerationRequest, VideoMetadata } from "../../contract/operations/VideoGenerations.ts"
import type { Endpoint } from "../transport/Endpoint.ts"

export interface VideoCall {
  /** The gateway's id of the task: a provider that takes an idempotency key is given this one. */
  readonly id: string
  readonly request: VideoGenerationRequest
  readonly endpoint: Endpoint
}

export interface Video {
  readonly bytes: Uint8Array
  readonly format: "mp4"
  readonly metadata: VideoMetadata
}

/** How long a provider may take to give a task a name, in milliseconds. */
export const createWithinMs = 30_000

/**
 * A task at a provider is JSON that only its engine reads. It is stored as soon as it is known, so that any worker can go
 * on with it.
 */
export interface VideoEngine {
  /**
   * Submits the task, once, and returns as soon as the provider has a name for it. Ends by itself within
   * `createWithinMs`, for it is not interrupted: a task whose name is lost is paid for in vain.
   */
  readonly start: (call: VideoCall) => Effect.Effect<unknown, JobError>
  /**
   * Follows the task to its end, whoever has started it, and says how far it is in percent. Failures are final: what may
   * yet succeed it has tried again. Interruption stops whatever happens in this process, but not what happens at the
   * provider.
   */
  readonly follow: (
    call: VideoCall,
    task: unknown,
    report: (progress: number) => void
  ) => Effect.Effect<Video, JobError>
  /** Stops the task at the provider. May be repeated. */
  readonly cancel: (call: VideoCall, task: unknown) => Effect.Effect<void, JobError>
}

/** The engine of the `local` protocol. */
export class LocalVideoEngine extends Context.Service<LocalVideoEngine, VideoEngine>()(
  "shared/provider/VideoEngine/LocalVideoEngine"
) {}
