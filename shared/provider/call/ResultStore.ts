/** The interface of the storage for results that clients fetch by URL. Each worker service supplies its own, or none. */
import { Context, Effect, Layer } from "effect"
import { InvalidRequest, type JobError } from "../../contract/JobError.ts"
import { isDiscarded } from "../../contract/Owner.ts"
import type { Call } from "./Protocol.ts"
import type { PictureKind } from "./PictureKind.ts"

export class ResultStore extends Context.Service<ResultStore, {
  /** Stores the bytes until their URL expires, and returns the URL. */
  readonly keep: (bytes: Uint8Array, kind: PictureKind) => Effect.Effect<string, JobError>
}>()("shared/provider/call/ResultStore") {
  /** For workers whose results have no URLs. */
  static readonly layerNone = Layer.succeed(ResultStore, {
    keep: () => Effect.fail(InvalidRequest.at("response_format", "must not be \"url\": this model returns no URLs"))
  })
}

/** Stores a result of a call and returns its URL, which is empty if the answer is discarded. */
export const keepFor = (
  call: Pick<Call, "tenant">,
  results: ResultStore["Service"],
  bytes: Uint8Array,
  kind: PictureKind
): Effect.Effect<string, JobError> => isDiscarded(call) ? Effect.succeed("") : results.keep(bytes, kind)
