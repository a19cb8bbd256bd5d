/** What a worker service does to a request before any provider or engine sees it. */
import { Context, Effect, Layer } from "effect"
import type { JobError } from "../contract/JobError.ts"
import type { Work } from "./JobLife.ts"

export class Preparation extends Context.Service<Preparation, {
  readonly prepare: (work: Work) => Effect.Effect<Work, JobError>
}>()("shared/worker/Preparation") {
  /** Leaves every request as it came. */
  static readonly layerNone = Layer.succeed(Preparation, { prepare: Effect.succeed })
}
