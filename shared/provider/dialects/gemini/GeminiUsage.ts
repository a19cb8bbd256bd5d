/** Converts usage from and to Gemini's dialect, which counts reasoning apart from output, and its tools' results apart from input. */
import type { Usage } from "../../../contract/Usage.ts"
import * as Json from "../../json/Json.ts"

export const usageOf = (reported: unknown): Usage | undefined => {
  const usage = Json.fields(reported)
  const prompt = Json.count(usage["promptTokenCount"])
  if (prompt === undefined) return undefined
  const thoughts = Json.count(usage["thoughtsTokenCount"])
  const input = tokensOf(usage["promptTokensDetails"], usage["toolUsePromptTokensDetails"])
  const output = tokensOf(usage["candidatesTokensDetails"])
  return {
    inputTokens: prompt + (Json.count(usage["toolUsePromptTokenCount"]) ?? 0),
    outputTokens: (Json.count(usage["candidatesTokenCount"]) ?? 0) + (thoughts ?? 0),
    ...Json.counts({
      cachedTokens: usage["cachedContentTokenCount"],
      reasoningTokens: thoughts,
      inputTextTokens: input("TEXT"),
      inputAudioTokens: input("AUDIO"),
      inputImageTokens: input("IMAGE"),
      outputTextTokens: output("TEXT"),
      outputAudioTokens: output("AUDIO"),
      outputImageTokens: output("IMAGE")
    })
  }
}

type Modality = "TEXT" | "AUDIO" | "IMAGE"

/** The tokens of a modality in all lists together; `undefined` if none names it. */
const tokensOf = (...lists: ReadonlyArray<unknown>) => {
  const counts = lists.flatMap(Json.list).map(Json.fields)
  return (modality: Modality): number | undefined =>
    counts.filter((each) => each["modality"] === modality).reduce<number | undefined>(
      (sum, { tokenCount }) => (sum ?? 0) + (Json.count(tokenCount) ?? 0),
      undefined
    )
}

const toDetails = (tokens: Readonly<Record<Modality, number | undefined>>) =>
  Object.entries(tokens).flatMap(([modality, tokenCount]) => tokenCount ? [{ modality, tokenCount }] : [])

export const toUsageMetadata = (usage: Usage) => {
  const { cachedTokens, inputTokens, outputTokens, reasoningTokens = 0 } = usage
  const input = toDetails({
    TEXT: usage.inputTextTokens,
    AUDIO: usage.inputAudioTokens,
    IMAGE: usage.inputImageTokens
  })
  const output = toDetails({
    TEXT: usage.outputTextTokens,
    AUDIO: usage.outputAudioTokens,
    IMAGE: usage.outputImageTokens
  })
  return {
    promptTokenCount: inputTokens,
    candidatesTokenCount: Math.max(0, outputTokens - reasoningTokens),
    totalTokenCount: inputTokens + outputTokens,
    ...(cachedTokens === undefined ? {} : { cachedContentTokenCount: cachedTokens }),
    ...(reasoningTokens === 0 ? {} : { thoughtsTokenCount: reasoningTokens }),
    ...(input.length === 0 ? {} : { promptTokensDetails: input }),
    ...(output.length === 0 ? {} : { candidatesTokensDetails: output })
  }
}
