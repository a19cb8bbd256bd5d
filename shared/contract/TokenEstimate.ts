/** About how many tokens a request will take, before anybody has counted them. */
import { Predicate } from "effect"
import type { Operation } from "./Operation.ts"

/** English text and JSON in UTF-8; other scripts take fewer bytes per token, pictures many more. */
const bytesPerToken = 4
/** What is longer than this is mostly pictures, whose bytes say nothing. */
const maxRequestTokens = 50_000
/** An answer whose length the client leaves open, and the most that is set aside for one that may be long. */
const defaultAnswerTokens = 500
const maxAnswerTokens = 4_000

const lengthFields = ["max_completion_tokens", "max_tokens", "max_output_tokens"]

const isCount = (value: unknown): value is number => typeof value === "number" && value > 0

/** What the client wants at most. */
const lengthOf = (field: (name: string) => unknown): number | undefined => {
  for (const name of lengthFields) {
    const value = field(name)
    if (isCount(value)) return value
  }
  const config = field("generationConfig")
  const value = Predicate.hasProperty(config, "maxOutputTokens") ? config["maxOutputTokens"] : undefined
  return isCount(value) ? value : undefined
}

/** At least 1, given the size of the body and how to read a field of it. */
export const tokenEstimate = (operation: Operation, bytes: number, field: (name: string) => unknown): number => {
  const request = Math.max(1, Math.min(Math.ceil(bytes / bytesPerToken), maxRequestTokens))
  if (!operation.workloads.includes("chat")) return request
  return request + Math.ceil(Math.min(lengthOf(field) ?? defaultAnswerTokens, maxAnswerTokens))
}
