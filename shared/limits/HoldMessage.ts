/**
 * The messages between worker and ingress about holds: the units of a key's limits that an ingress keeps taken while a worker runs a
 * task.
 */
import { Schema } from "effect"
import { JobError } from "../contract/JobError.ts"
import { Usage } from "../contract/Usage.ts"

/** Work that starts once an ingress holds its units. */
export const Work = Schema.Struct({
  /** The id of its task. */
  task: Schema.String,
  /** The id of the key that pays for the work. */
  key: Schema.String,
  model: Schema.String,
  /** The expected number of tokens. */
  tokens: Schema.Finite,
  /** Whether the work is a line of a batch; these are limited separately from requests. */
  inBatch: Schema.optionalKey(Schema.Boolean),
  /** For a video, its length in seconds. Videos take units of budgets only, because their creation has counted as a request. */
  seconds: Schema.optionalKey(Schema.Finite),
  /** Whether the work runs already and its hold is lost. The lost hold's tokens count as used, so only those beyond them are taken. */
  isHoldLost: Schema.optionalKey(Schema.Boolean)
})
export type Work = typeof Work.Type

/** `take`: asks for a hold. `renew`: the work continues. `settle`: the work has ended; `used` is `null` if unknown. */
const Question = Schema.Union([
  Schema.Struct({ ask: Schema.Literal("take"), work: Work }),
  Schema.Struct({ ask: Schema.Literal("renew"), task: Schema.String }),
  Schema.Struct({
    ask: Schema.Literal("settle"),
    task: Schema.String,
    used: Schema.NullOr(Schema.Union([Usage, Schema.Literal("nothing")]))
  })
])
export type Question = typeof Question.Type

/** `later`: no units now. `refused`: waiting would not help. `unknown`: the ingress holds nothing for the task. */
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

/** How long an ingress may wait for units before it answers, in milliseconds, and how long the worker waits for the answer. */
export const unitsWithinMs = 1_000
export const answerWithinMs = 3_000

/** How often a worker renews a hold, in milliseconds. */
export const renewMs = 2_000

/** An ingress returns the units of a hold that was not renewed for this long, in milliseconds: the worker is lost. */
export const silentMs = 10_000
