/** Where a worker keeps results that clients fetch by an address. Each worker service brings its own, or none. */
import { Context, Effect, Layer } from "effect"
import { InvalidRequest, type JobError } from "../../contract/JobError.ts"
import type { PictureKind } from "./PictureKind.ts"

export class ResultStore extends Context.Service<ResultStore, {
  /** Keeps the bytes for as long as their address, which it returns, is good. */
  readonly keep: (bytes: Uint8Array, kind: PictureKind) => Effect.Effect<string, JobError>
}>()("shared/provider/ResultStore") {
  /** For workers whose results have no addresses. */
  static readonly layerNone = Layer.succeed(ResultStore, {
    keep: () => Effect.fail(InvalidRequest.at("response_format", "must not be \"url\": this model gives no addresses"))
  })
}
