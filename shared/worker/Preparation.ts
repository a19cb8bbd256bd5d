/** The interface for a workload's own steps before and after the call to a provider or an engine. */
import { Context, type Effect, Layer } from "effect"
import type { JobReply } from "../bus/worker/JobReply.ts"
import type { JobError } from "../contract/JobError.ts"
import type { Usage } from "../contract/Usage.ts"
import type { Work } from "./JobLife.ts"

/** The receiver of an answer. */
export type Answer = Pick<JobReply, "hasStarted" | "onDrain" | "start" | "write">

export type Perform = (work: Work, answer: Answer) => Effect.Effect<Usage | undefined, JobError>

export class Preparation extends Context.Service<Preparation, {
  readonly around: (work: Work, answer: Answer, perform: Perform) => Effect.Effect<Usage | undefined, JobError>
}>()("shared/worker/Preparation") {
  /** Leaves requests and answers unchanged. */
  static readonly layerNone = Layer.succeed(Preparation, { around: (work, answer, perform) => perform(work, answer) })
}
