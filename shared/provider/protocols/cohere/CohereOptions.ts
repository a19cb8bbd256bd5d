/** What the catalogue can set for the `cohere` protocol. */
import { Schema } from "effect"
import * as Options from "../../call/Options.ts"

const CohereOptions = Schema.Struct({
  /** Where reranking lives below `baseUrl`. Default `/v1/rerank`. */
  rerankPath: Schema.optionalKey(Schema.String.check(Schema.isPattern(/^\/[^\s?#]*$/, { expected: "a path" }))),
  /** What vectors are for, where a request's own `input_type` does not say. Default `search_document`. */
  inputType: Schema.optionalKey(Schema.NonEmptyString)
})

export const optionsOf = Options.reader(CohereOptions)
