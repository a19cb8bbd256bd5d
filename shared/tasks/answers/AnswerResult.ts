/** The result in the record of an answer's task, which workers write. */
import { Schema } from "effect"
import { Usage } from "../../contract/Usage.ts"

export const AnswerResult = Schema.Struct({
  pages: Schema.Int,
  /** The size of the answer. */
  bytes: Schema.Int,
  /** The answer is cut short, for example at its token limit. */
  isIncomplete: Schema.optionalKey(Schema.Literal(true)),
  /** Stored for another worker, which writes the usage event if this one is lost before it does. */
  usage: Schema.optionalKey(Usage)
})
export type AnswerResult = typeof AnswerResult.Type

/** The result of a task that has completed; `None` for any other. */
export const answerResult = Schema.decodeUnknownOption(AnswerResult)
