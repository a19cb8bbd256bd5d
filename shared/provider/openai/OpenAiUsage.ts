/** Usage as the OpenAI dialect reports it, read into the gateway's own terms. */
import { Option, Schema } from "effect"
import type { Usage } from "../../contract/Usage.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const optionalCount = Schema.optionalKey(Schema.NullOr(Count))

const InputDetails = Schema.Struct({ cached_tokens: optionalCount, cache_write_tokens: optionalCount })

const Reported = Schema.Struct({
  prompt_tokens: Count,
  completion_tokens: optionalCount,
  prompt_tokens_details: Schema.optionalKey(Schema.NullOr(InputDetails)),
  completion_tokens_details: Schema.optionalKey(Schema.NullOr(Schema.Struct({ reasoning_tokens: optionalCount })))
})
/** As pictures and responses have it. */
const ReportedByInput = Schema.Struct({
  input_tokens: Count,
  output_tokens: optionalCount,
  input_tokens_details: Schema.optionalKey(Schema.NullOr(InputDetails)),
  output_tokens_details: Schema.optionalKey(Schema.NullOr(Schema.Struct({ reasoning_tokens: optionalCount })))
})
const decode = Schema.decodeUnknownOption(Schema.Union([Reported, ReportedByInput]))

/** `undefined` where nothing, or nothing sensible, was reported. */
export const usageOf = (reported: unknown): Usage | undefined =>
  Option.match(decode(reported), {
    onNone: () => undefined,
    onSome: (usage) => {
      const [inputTokens, outputTokens, inputDetails, outputDetails] = "prompt_tokens" in usage
        ? [usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details, usage.completion_tokens_details]
        : [usage.input_tokens, usage.output_tokens, usage.input_tokens_details, usage.output_tokens_details]
      const cached = inputDetails?.cached_tokens
      const written = inputDetails?.cache_write_tokens
      const reasoning = outputDetails?.reasoning_tokens
      return {
        inputTokens,
        outputTokens: outputTokens ?? 0,
        ...(typeof cached === "number" ? { cachedTokens: cached } : {}),
        ...(typeof written === "number" ? { cacheWriteTokens: written } : {}),
        ...(typeof reasoning === "number" ? { reasoningTokens: reasoning } : {})
      }
    }
  })
