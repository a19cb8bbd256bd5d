/** The catalogue's options for the `cohere` protocol. */
import { Schema } from "effect"
import * as Options from "../../call/Options.ts"

export const CohereOptions = Schema.Struct({
  /** The path of rerank below `baseUrl`. Default `/v1/rerank`. */
  rerankPath: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\/[^\s?#]*$/, { expected: "a path" }))),
  /** The use of vectors if a request has no `input_type`. Default `search_document`. */
  inputType: Schema.optionalKey(Schema.NonEmptyString)
})
export type CohereOptions = typeof CohereOptions.Type

export const optionsOf = Options.reader(CohereOptions)
