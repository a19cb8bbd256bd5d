/** Usage as the OpenAI dialect reports it, read into the gateway's own terms. */
import type { Usage } from "../../../contract/Usage.ts"
import * as Json from "../../json/Json.ts"

/** As chat has it, and as pictures and responses have it. */
const names = {
  chat: ["prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"],
  others: ["input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"]
} as const

/** `undefined` where nothing, or nothing sensible, was reported. */
export const usageOf = (reported: unknown): Usage | undefined => {
  const usage = Json.fields(reported)
  const [input, output, inputDetails, outputDetails] = "prompt_tokens" in usage ? names.chat : names.others
  // of embeddings Voyage tells but the total, which is all input
  const inputTokens = Json.count(usage[input] ?? (usage[output] === undefined ? usage["total_tokens"] : undefined))
  const outputTokens = Json.count(usage[output] ?? 0)
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  const { cache_write_tokens, cached_tokens } = Json.fields(usage[inputDetails])
  const cached = Json.count(cached_tokens)
  const written = Json.count(cache_write_tokens)
  const reasoning = Json.count(Json.fields(usage[outputDetails])["reasoning_tokens"])
  // xAI counts what was thought beside the output, as only its total tells
  const isBeside = reasoning !== undefined && usage["total_tokens"] === inputTokens + outputTokens + reasoning
  return {
    inputTokens,
    outputTokens: isBeside ? outputTokens + reasoning : outputTokens,
    ...(cached === undefined ? {} : { cachedTokens: cached }),
    ...(written === undefined ? {} : { cacheWriteTokens: written }),
    ...(reasoning === undefined ? {} : { reasoningTokens: reasoning })
  }
}
