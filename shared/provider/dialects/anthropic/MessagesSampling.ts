/** Encodes sampling settings for providers of the messages dialect. */
import type { Conversation } from "../conversation/Conversation.ts"
import type { Losses } from "../conversation/Losses.ts"
import type { SamplingSupport } from "./ClaudeModels.ts"

/** Sampling settings that the model rejects are left out: many clients send settings that their users have never made. */
export const toSampling = (
  { sampling = {} }: Conversation,
  support: SamplingSupport | "reasoning",
  losses: Losses
): object => {
  const { temperature, topK, topP } = sampling
  if (support === "none" || support === "reasoning") {
    const why = support === "none" ? "is not accepted by this model" : "gives way to reasoning"
    for (const [name, value, usual] of [["temperature", temperature, 1], ["topP", topP, 1], ["topK", topK]] as const) {
      if (value !== undefined && value !== usual) losses.warnOf(name, why)
    }
    return {}
  }
  if (temperature !== undefined && temperature > 1) losses.warnOf("temperature", "was lowered to 1")
  const isEither = support === "one" && temperature !== undefined
  if (isEither && topP !== undefined && topP !== 1) losses.warnOf("topP", "gives way to the temperature")
  return {
    temperature: temperature === undefined ? undefined : Math.min(1, temperature),
    top_p: isEither ? undefined : topP,
    top_k: topK
  }
}
