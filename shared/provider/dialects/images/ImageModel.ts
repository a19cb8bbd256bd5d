/** What makes pictures, whoever it is: the one kind of request that it knows, and what it gives. */
import type { Effect } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import type { Usage } from "../../../contract/Usage.ts"
import type { Call } from "../../call/Protocol.ts"
import type { ImageRequest } from "./ImageRequest.ts"

/** A picture as a model gives it: the file, or the address at which the provider has it. */
export interface Picture {
  readonly content: Uint8Array | URL
  /** What it shows, or what was done to it, where that is not just what was asked for. */
  readonly revisedPrompt?: string | undefined
}

export interface Made {
  readonly pictures: ReadonlyArray<Picture>
  /** The number of pictures is added to it. */
  readonly usage?: Usage | undefined
  /** What of the request could not be carried over, by its path. */
  readonly warnings?: ReadonlyArray<string>
}

/** Makes pictures, or changes those of the request where there are any. */
export type ImageModel = (call: Call, request: ImageRequest) => Effect.Effect<Made, JobError>
