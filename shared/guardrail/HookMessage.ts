/** The messages between gateway and guardrail. README.md beside this file describes them for operators. */
import { Schema } from "effect"

const about = {
  /** The id of the job or the task: the same for all checks of one request. */
  id: Schema.String,
  /** The id of the API key. */
  tenant: Schema.String,
  model: Schema.String,
  operation: Schema.String
}

export const RequestCheck = Schema.Struct({
  ...about,
  direction: Schema.Literal("request"),
  /** The request's JSON as the provider gets it, or the texts of a form by field. */
  request: Schema.Unknown
})
export type RequestCheck = typeof RequestCheck.Type

export const AnswerCheck = Schema.Struct({
  ...about,
  direction: Schema.Literal("answer"),
  /** The number of this part of a stream, from 0. Other answers have only one part. */
  window: Schema.Int,
  /** What the model wrote, preceded by the end of the previous part. */
  text: Schema.String
})
export type AnswerCheck = typeof AnswerCheck.Type

/** A check without its content. */
export type About = Omit<RequestCheck, "request"> | Omit<AnswerCheck, "text">

const end = Buffer.from("}")

/** The JSON of a check. `content`: the JSON of the request or of the text, which may be large, so it is not encoded again. */
export const encode = (about: About, content: Uint8Array): Uint8Array => {
  const name = about.direction === "request" ? "request" : "text"
  return Buffer.concat([Buffer.from(`${JSON.stringify(about).slice(0, -1)},"${name}":`), content, end])
}

export const Verdict = Schema.Struct({
  decision: Schema.Literals(["allow", "refuse"]),
  /** Shown to the client. */
  reason: Schema.optionalKey(Schema.NullOr(Schema.String))
})
export type Verdict = typeof Verdict.Type
