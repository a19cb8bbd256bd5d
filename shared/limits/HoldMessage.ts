/**
 * What a worker and an ingress tell each other about the units that the work of a task takes from its key's limits.
 */
import { Schema } from "effect"
import { JobError } from "../contract/JobError.ts"

/** Work that starts when its units are held. */
export const Work = Schema.Struct({
  /** The id of its task. */
  task: Schema.String,
  /** The id of the key that pays for it. */
  key: Schema.String,
  model: Schema.String,
  /** The tokens that it is expected to use. */
  tokens: Schema.Finite,
  /** Whether it is a line of a batch, which counts apart from requests. */
  inBatch: Schema.optionalKey(Schema.Boolean),
  /** The seconds of the video that it makes. It takes from budgets alone: its creation was counted as a request. */
  seconds: Schema.optionalKey(Schema.Finite)
})
export type Work = typeof Work.Type

/** `renew`: the work goes on. `settle`: it has ended with so many tokens, `null` if their number is unknown. */
const Question = Schema.Union([
  Schema.Struct({ ask: Schema.Literal("take"), work: Work }),
  Schema.Struct({ ask: Schema.Literal("renew"), task: Schema.String }),
  Schema.Struct({ ask: Schema.Literal("settle"), task: Schema.String, tokens: Schema.NullOr(Schema.Finite) })
])
export type Question = typeof Question.Type

/** `refused`: no wait would help. `unknown`: the ingress holds nothing for the task. */
const Answer = Schema.Union([
  Schema.Struct({ answer: Schema.Literal("held") }),
  Schema.Struct({ answer: Schema.Literal("later"), retryAfterMs: Schema.Finite }),
  Schema.Struct({ answer: Schema.Literal("refused"), error: JobError }),
  Schema.Struct({ answer: Schema.Literal("unknown") })
])
export type Answer = typeof Answer.Type

const question = Schema.fromJsonString(Question)
export const encodeQuestion = Schema.encodeSync(question)
/** `None` for a question of a newer version. */
export const decodeQuestion = Schema.decodeUnknownOption(question)

const answer = Schema.fromJsonString(Answer)
export const encodeAnswer = Schema.encodeSync(answer)
export const decodeAnswer = Schema.decodeUnknownOption(answer)

/** How often a worker renews what an ingress holds for it, in milliseconds. */
export const renewMs = 2_000

/** After how long without renewal an ingress returns the units, in milliseconds: the worker is lost. */
export const silentMs = 10_000
