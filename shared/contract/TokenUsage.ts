/** The schemas of usage in answers, in tokens. */
import { Schema } from "effect"
import { field, tokens } from "./Fields.ts"

const kind = (description: string) => Schema.optionalKey(tokens(description))

/** The tokens of input or output by kind. A kind is left out if the provider does not report its tokens. */
const kinds = {
  text_tokens: kind("Of these, text. For output: without reasoning."),
  audio_tokens: kind("Of these, audio."),
  image_tokens: kind("Of these, images.")
}

export const InputTokensDetails = Schema.Struct({
  cached_tokens: kind("Of these, read from the provider's cache."),
  cache_write_tokens: kind("Of these, written to the provider's cache."),
  ...kinds
})

export const OutputTokensDetails = Schema.Struct({
  reasoning_tokens: kind("Of these, spent on reasoning."),
  ...kinds
})

export const EstimatedTokens = kind("Tokens that the gateway estimated because the provider reported none.")

/** Usage in answers of chat completions, completions and compaction. */
export const TokenUsage = Schema.Struct({
  prompt_tokens: tokens("Tokens of the request."),
  completion_tokens: tokens("Tokens of the answer, including reasoning."),
  total_tokens: tokens("`prompt_tokens` and `completion_tokens` together."),
  prompt_tokens_details: field(
    Schema.optionalKey(InputTokensDetails),
    "Parts of `prompt_tokens`, as far as they are known."
  ),
  completion_tokens_details: field(
    Schema.optionalKey(OutputTokensDetails),
    "Parts of `completion_tokens`, as far as they are known."
  ),
  estimated_tokens: EstimatedTokens
})
