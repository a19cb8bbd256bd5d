/** About how many tokens a request will take, before anybody has counted them. */
import { Predicate } from "effect"
import type { Operation, RequestBody } from "../../shared/contract/Operation.ts"

/** English text and JSON in UTF-8; other scripts take fewer bytes per token, pictures many more. */
const bytesPerToken = 4
/** What is longer than this is mostly pictures, whose bytes say nothing. */
const maxRequestTokens = 50_000
/** An answer whose length the client leaves open, and the most that is set aside for one that may be long. */
const defaultAnswerTokens = 500
const maxAnswerTokens = 4_000

const lengthFields = ["max_completion_tokens", "max_tokens", "maxOutputTokens"]

const lengthIn = (fields: unknown): number | undefined => {
  for (const name of lengthFields) {
    const value = Predicate.hasProperty(fields, name) ? fields[name] : undefined
    if (typeof value === "number" && value > 0) return Math.min(value, maxAnswerTokens)
  }
  return undefined
}

/** At least 1. */
export const of = (operation: Operation, request: RequestBody, bodyBytes: number): number => {
  const input = Math.max(1, Math.min(Math.ceil(bodyBytes / bytesPerToken), maxRequestTokens))
  if (!operation.workloads.includes("chat")) return input
  const config = Predicate.hasProperty(request, "generationConfig") ? request.generationConfig : undefined
  return input + Math.ceil(lengthIn(request) ?? lengthIn(config) ?? defaultAnswerTokens)
}
