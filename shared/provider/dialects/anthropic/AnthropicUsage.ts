/** Decodes usage of the messages dialect. */
import type { Usage } from "../../../contract/Usage.ts"
import * as Json from "../../json/Json.ts"

/**
 * Merges a report with the one before: a stream reports twice, and the second omits what has not changed. `input_tokens`
 * excludes tokens read from or written to the cache.
 */
export const usageOf = (reported: unknown, before?: Usage): Usage | undefined => {
  const usage = Json.fields(reported)
  const output = Json.count(usage["output_tokens"])
  const read = Json.count(usage["cache_read_input_tokens"]) ?? before?.cachedTokens
  const written = Json.count(usage["cache_creation_input_tokens"]) ?? before?.cacheWriteTokens
  const forAnHour = Json.count(Json.fields(usage["cache_creation"])["ephemeral_1h_input_tokens"]) ??
    before?.cacheWriteHourTokens
  const plain = Json.count(usage["input_tokens"]) ??
    (before === undefined
      ? undefined
      : before.inputTokens - (before.cachedTokens ?? 0) - (before.cacheWriteTokens ?? 0))
  if (plain === undefined || output === undefined) return before
  const thinking = Json.count(Json.fields(usage["output_tokens_details"])["thinking_tokens"]) ?? before?.reasoningTokens
  return {
    inputTokens: plain + (read ?? 0) + (written ?? 0),
    outputTokens: output,
    ...(read === undefined ? {} : { cachedTokens: read }),
    ...(written === undefined ? {} : { cacheWriteTokens: written }),
    ...(forAnHour === undefined ? {} : { cacheWriteHourTokens: forAnHour }),
    ...(thinking === undefined ? {} : { reasoningTokens: thinking })
  }
}
