/** Generates or edits pictures, by any provider or engine. */
import type { Effect } from "effect"
import type { JobError } from "../../../contract/JobError.ts"
import type { Usage } from "../../../contract/Usage.ts"
import type { Call } from "../../call/Protocol.ts"
import type { ImageRequest } from "./ImageRequest.ts"

export interface Picture {
  /** Its bytes, or the URL in the provider's answer, as it is. */
  readonly content: Uint8Array | string
  /** The prompt that the model used, if it differs from the request's. */
  readonly revisedPrompt?: string | undefined
}

export interface GeneratedPictures {
  readonly pictures: ReadonlyArray<Picture>
  /** Excludes the number of pictures, which the caller adds. */
  readonly usage?: Usage | undefined
  /** Paths of lost fields. */
  readonly warnings?: ReadonlyArray<string>
}

/** Edits the pictures of the request if there are any. */
export type ImageModel = (call: Call, request: ImageRequest) => Effect.Effect<GeneratedPictures, JobError>
