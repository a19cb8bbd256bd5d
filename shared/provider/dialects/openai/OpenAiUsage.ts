/** Converts usage from and to the OpenAI dialect. */
import type { Usage } from "../../../contract/Usage.ts"
import * as Json from "../../json/Json.ts"

/** The names in chat, and in pictures and responses. */
const names = {
  chat: ["prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"],
  others: ["input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"]
} as const

/** Of the input, or of the output. If text is all of it, there is no other kind. */
const toKinds = (rest: number, text?: number, audio?: number, image?: number) => {
  const none = text === rest ? 0 : undefined
  return Json.counts({ text_tokens: text, audio_tokens: audio ?? none, image_tokens: image ?? none })
}

const toInputDetails = (usage: Usage) => ({
  cached_tokens: usage.cachedTokens ?? 0,
  ...Json.counts({ cache_write_tokens: usage.cacheWriteTokens }),
  ...toKinds(usage.inputTokens, usage.inputTextTokens, usage.inputAudioTokens, usage.inputImageTokens)
})

const toOutputDetails = ({ outputTokens, reasoningTokens = 0, ...usage }: Usage) => ({
  reasoning_tokens: reasoningTokens,
  ...toKinds(outputTokens - reasoningTokens, usage.outputTextTokens, usage.outputAudioTokens, usage.outputImageTokens)
})

export const toTokenUsage = (usage: Usage) => ({
  prompt_tokens: usage.inputTokens,
  completion_tokens: usage.outputTokens,
  total_tokens: usage.inputTokens + usage.outputTokens,
  prompt_tokens_details: toInputDetails(usage),
  completion_tokens_details: toOutputDetails(usage),
  ...toEstimated(usage)
})

/** In the responses dialect. */
export const toResponsesUsage = (usage: Usage) => ({
  input_tokens: usage.inputTokens,
  // OpenAI's client for Java fails without the tokens written to the cache
  input_tokens_details: { ...toInputDetails(usage), cache_write_tokens: usage.cacheWriteTokens ?? 0 },
  output_tokens: usage.outputTokens,
  output_tokens_details: toOutputDetails(usage),
  total_tokens: usage.inputTokens + usage.outputTokens,
  ...toEstimated(usage)
})

/** Under the names of both dialects. */
export const toCompactionUsage = (usage: Usage) => ({
  ...toTokenUsage(usage),
  ...toResponsesUsage(usage)
})

export const toEmbeddingUsage = (usage: Usage) => ({
  prompt_tokens: usage.inputTokens,
  total_tokens: usage.inputTokens,
  ...toEstimated(usage)
})

/** The mark of an estimate. */
export const toEstimated = ({ estimatedTokens }: Usage) => Json.counts({ estimated_tokens: estimatedTokens })

/** `undefined` if nothing, or nothing valid, was reported. */
export const usageOf = (reported: unknown): Usage | undefined => {
  const usage = Json.fields(reported)
  const [input, output, inputDetails, outputDetails] = "prompt_tokens" in usage ? names.chat : names.others
  // for embeddings Voyage reports only the total, which is all input
  const inputTokens = Json.count(usage[input] ?? (usage[output] === undefined ? usage["total_tokens"] : undefined))
  const outputTokens = Json.count(usage[output] ?? 0)
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  const [detailsIn, detailsOut] = [Json.fields(usage[inputDetails]), Json.fields(usage[outputDetails])]
  const reasoning = Json.count(detailsOut["reasoning_tokens"])
  // xAI counts reasoning separately from the output, as only the total shows
  const isBeside = reasoning !== undefined && usage["total_tokens"] === inputTokens + outputTokens + reasoning
  return {
    inputTokens,
    outputTokens: isBeside ? outputTokens + reasoning : outputTokens,
    ...Json.counts({
      // beside the details: Moonshot, DeepSeek
      cachedTokens: detailsIn["cached_tokens"] ?? usage["cached_tokens"] ?? usage["prompt_cache_hit_tokens"],
      cacheWriteTokens: detailsIn["cache_write_tokens"],
      reasoningTokens: reasoning,
      inputTextTokens: detailsIn["text_tokens"],
      inputAudioTokens: detailsIn["audio_tokens"],
      inputImageTokens: detailsIn["image_tokens"],
      outputTextTokens: detailsOut["text_tokens"],
      outputAudioTokens: detailsOut["audio_tokens"],
      outputImageTokens: detailsOut["image_tokens"]
    })
  }
}

/** Usage in an answer, or in a piece of a stream. */
export interface FoundUsage {
  readonly usage: Usage
  /** Whether it is only where clients do not look for it. */
  readonly isElsewhere: boolean
}

/**
 * The usage of an answer or a piece: under `usage`, or where other servers have it. Groq has it in `x_groq`, Moonshot in a choice, and
 * Cloudflare in `result`; llama.cpp counts in `timings`, where the cached part of the prompt is separate, and Ollama beside the answer.
 */
export const findUsage = (data: Json.Fields): FoundUsage | undefined => {
  const own = usageOf(data["usage"])
  if (own !== undefined) return { usage: own, isElsewhere: false }
  const { choices, eval_count, prompt_eval_count, result, timings, x_groq } = data
  const { cache_n, predicted_n, prompt_n } = Json.fields(timings)
  const places = [
    Json.fields(x_groq)["usage"],
    ...Json.list(choices).flatMap((choice) => {
      const { delta, message, usage } = Json.fields(choice)
      return [usage, Json.fields(delta)["usage"], Json.fields(message)["usage"]]
    }),
    Json.fields(result)["usage"],
    { prompt_tokens: prompt_eval_count, completion_tokens: eval_count },
    prompt_n === undefined ? undefined : {
      prompt_tokens: (Json.count(prompt_n) ?? 0) + (Json.count(cache_n) ?? 0),
      completion_tokens: predicted_n,
      cached_tokens: cache_n
    }
  ]
  const usage = places.map(usageOf).find((usage) => usage !== undefined)
  return usage === undefined ? undefined : { usage, isElsewhere: true }
}

/** The names of the members that `findUsage` reads. */
export const usageMembers = ["usage", "timings", "eval_count"] as const

/** Of a transcript: tokens or the duration of the sound, which some servers report beside the text only. */
export const transcriptUsageOf = ({ duration, usage: reported }: Json.Fields): Usage | undefined => {
  const usage = Json.fields(reported)
  const seconds = usage["type"] === "tokens" ? Number.NaN : Number(usage["seconds"] ?? duration)
  if (seconds >= 0 && seconds < Infinity) return { inputTokens: 0, outputTokens: 0, seconds }
  return usageOf({ ...usage, input_tokens_details: usage["input_token_details"] })
}

/** In a transcript; `undefined` if nothing is known. */
export const toTranscriptUsage = ({ inputTokens, outputTokens, seconds }: Usage) => {
  if (seconds !== undefined) return { type: "duration", seconds: Math.ceil(seconds) }
  const total_tokens = inputTokens + outputTokens
  return total_tokens === 0
    ? undefined
    : { type: "tokens", input_tokens: inputTokens, output_tokens: outputTokens, total_tokens }
}
