/** Reads the billed usage of a rerank. */
import { Option, Schema } from "effect"
import { atLeast } from "../../../contract/Fields.ts"
import type { Usage } from "../../../contract/Usage.ts"

const Count = atLeast(0)

/** Cohere counts search units, others tokens. */
const Billed = Schema.Struct({
  meta: Schema.optionalKey(Schema.NullOr(Schema.Struct({
    billed_units: Schema.optionalKey(Schema.NullOr(Schema.Struct({
      search_units: Schema.optionalKey(Count),
      input_tokens: Schema.optionalKey(Count)
    })))
  }))),
  usage: Schema.optionalKey(Schema.NullOr(Schema.Struct({ total_tokens: Schema.optionalKey(Count) })))
})
const decode = Schema.decodeUnknownOption(Billed)

/** The usage in an answer; `undefined` if the answer reports none that is valid. */
export const usageIn = (answer: unknown): Usage | undefined => {
  const { meta, usage } = Option.getOrElse(decode(answer), (): typeof Billed.Type => ({}))
  const units = meta?.billed_units?.search_units
  const tokens = meta?.billed_units?.input_tokens ?? usage?.total_tokens
  if (units === undefined && tokens === undefined) return undefined
  return { inputTokens: tokens ?? 0, outputTokens: 0, ...(units === undefined ? {} : { searchUnits: units }) }
}
