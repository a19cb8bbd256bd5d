/** Converts usage from and to the OpenAI dialect. */
import type { Usage } from "../../../contract/Usage.ts"
import * as Json from "../../json/Json.ts"

/** The names in chat, and in pictures and responses. */
const names = {
  chat: ["prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"],
  others: ["input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"]
} as const

export const toTokenUsage = (usage: Usage) => ({
  prompt_tokens: usage.inputTokens,
  completion_tokens: usage.outputTokens,
  total_tokens: usage.inputTokens + usage.outputTokens,
  prompt_tokens_details: {
    cached_tokens: usage.cachedTokens ?? 0,
    ...(usage.cacheWriteTokens === undefined ? {} : { cache_write_tokens: usage.cacheWriteTokens })
  },
  completion_tokens_details: { reasoning_tokens: usage.reasoningTokens ?? 0 }
})

/** `undefined` if nothing, or nothing valid, was reported. */
export const usageOf = (reported: unknown): Usage | undefined => {
  const usage = Json.fields(reported)
  const [input, output, inputDetails, outputDetails] = "prompt_tokens" in usage ? names.chat : names.others
  // for embeddings Voyage reports only the total, which is all input
  const inputTokens = Json.count(usage[input] ?? (usage[output] === undefined ? usage["total_tokens"] : undefined))
  const outputTokens = Json.count(usage[output] ?? 0)
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  const { cache_write_tokens, cached_tokens } = Json.fields(usage[inputDetails])
  const cached = Json.count(cached_tokens)
  const written = Json.count(cache_write_tokens)
  const reasoning = Json.count(Json.fields(usage[outputDetails])["reasoning_tokens"])
  // xAI counts reasoning separately from the output, as only the total shows
  const isBeside = reasoning !== undefined && usage["total_tokens"] === inputTokens + outputTokens + reasoning
  return {
    inputTokens,
    outputTokens: isBeside ? outputTokens + reasoning : outputTokens,
    ...(cached === undefined ? {} : { cachedTokens: cached }),
    ...(written === undefined ? {} : { cacheWriteTokens: written }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning })
  }
}
