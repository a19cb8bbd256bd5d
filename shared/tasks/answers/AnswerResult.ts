/** What a task's record stores about its answer, which workers write. */
import { Schema } from "effect"
import { Usage } from "../../contract/Usage.ts"

export const AnswerResult = Schema.Struct({
  pages: Schema.Int,
  /** The size of the answer. */
  bytes: Schema.Int,
  /** The answer ends before its end, as at the limit of its tokens. */
  isIncomplete: Schema.optionalKey(Schema.Literal(true)),
  /** For the worker that writes the usage event if this one is lost before. */
  usage: Schema.optionalKey(Usage)
})
export type AnswerResult = typeof AnswerResult.Type

/** The result of a task that has completed; `None` for any other. */
export const answerResult = Schema.decodeUnknownOption(AnswerResult)
