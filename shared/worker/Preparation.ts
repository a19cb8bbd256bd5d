/** A workload's own step between decoding a request and calling a provider or an engine. */
import { Context, Effect, Layer } from "effect"
import type { JobError } from "../contract/JobError.ts"
import type { Work } from "./JobLife.ts"

export class Preparation extends Context.Service<Preparation, {
  readonly prepare: (work: Work) => Effect.Effect<Work, JobError>
}>()("shared/worker/Preparation") {
  /** Leaves requests unchanged. */
  static readonly layerNone = Layer.succeed(Preparation, { prepare: Effect.succeed })
}
