/** What a request consumed, in the units that providers bill by. Counts are whole, and nothing is negative. */
import { Schema } from "effect"
import { atLeast } from "./Fields.ts"

const Count = atLeast(0)

export const Usage = Schema.Struct({
  inputTokens: Count,
  outputTokens: Count,
  /** Part of `inputTokens` that the provider read from its cache. */
  cachedTokens: Schema.optionalKey(Count),
  /** Part of `inputTokens` that the provider has written to its cache. */
  cacheWriteTokens: Schema.optionalKey(Count),
  /** Part of `outputTokens` spent on reasoning. */
  reasoningTokens: Schema.optionalKey(Count),
  /** Of the text that was read aloud, where that is what is billed. Counted as Unicode code points. */
  characters: Schema.optionalKey(Count),
  /** Searches over documents, where reranking is billed by them. */
  searchUnits: Schema.optionalKey(Count),
  /** Pictures that were made. */
  images: Schema.optionalKey(Count),
  /** Of the video that was made. */
  seconds: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0)))
})
export type Usage = typeof Usage.Type
