/**
 * Words the error of a prompt beyond the model's context as Anthropic does: `prompt is too long: 210000 tokens > 200000 maximum`. Claude Code
 * compacts the conversation only if it finds these words.
 */

/** How providers name the size of the prompt. */
const sizes = [
  // OpenAI, vLLM
  /(?:resulted in|requested(?: about)?|contains(?: at least)?)\s+([\d,]+)/i,
  // Gemini, SGLang, llama.cpp
  /(?:token count|input|request) \(([\d,]+)/i,
  // TGI
  /given:\s*([\d,]+)/i
]

/** How they name the maximum. */
const limits = [
  // OpenAI, vLLM, DeepSeek, Mistral
  /maximum context length (?:of|is)\s+([\d,]+)/i,
  // Gemini
  /tokens allowed \(([\d,]+)/i,
  // SGLang; llama.cpp
  /context (?:length|size) \(([\d,]+)/i,
  // TGI
  /must (?:be <=|have less than)\s+([\d,]+)/i,
  // DashScope
  /should be \[\d+,\s*([\d,]+)\]/i
]

const numberIn = (message: string, patterns: ReadonlyArray<RegExp>): string | undefined =>
  patterns.map((pattern) => pattern.exec(message)?.[1]?.replaceAll(",", "")).find((digits) => digits !== undefined)

/** The message in Anthropic's words, followed by the provider's own if that does not state both numbers. */
export const inAnthropicsWords = (message: string): string => {
  if (/prompt is too long/i.test(message)) return message
  const size = numberIn(message, sizes)
  const limit = numberIn(message, limits)
  return size === undefined || limit === undefined
    ? `prompt is too long: ${message}`
    : `prompt is too long: ${size} tokens > ${limit} maximum`
}
