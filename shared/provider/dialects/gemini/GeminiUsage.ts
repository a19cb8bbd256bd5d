/** Decodes usage of the Gemini dialect. */
import type { Usage } from "../../../contract/Usage.ts"
import * as Json from "../../json/Json.ts"

/** Reported output excludes reasoning, and input excludes results of the provider's tools. */
export const usageOf = (reported: unknown): Usage | undefined => {
  const usage = Json.fields(reported)
  const prompt = Json.count(usage["promptTokenCount"])
  if (prompt === undefined) return undefined
  const cached = Json.count(usage["cachedContentTokenCount"])
  const thoughts = Json.count(usage["thoughtsTokenCount"])
  return {
    inputTokens: prompt + (Json.count(usage["toolUsePromptTokenCount"]) ?? 0),
    outputTokens: (Json.count(usage["candidatesTokenCount"]) ?? 0) + (thoughts ?? 0),
    ...(cached === undefined ? {} : { cachedTokens: cached }),
    ...(thoughts === undefined ? {} : { reasoningTokens: thoughts })
  }
}
