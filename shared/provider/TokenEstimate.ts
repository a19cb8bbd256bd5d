/** About how many tokens a request will take, before anybody has counted them. */
import { Predicate } from "effect"
import type { Operation } from "../contract/Operation.ts"
import * as JsonText from "./JsonText.ts"

/** English text and JSON in UTF-8; other scripts take fewer bytes per token, pictures many more. */
const bytesPerToken = 4
/** What is longer than this is mostly pictures, whose bytes say nothing. */
const maxRequestTokens = 50_000
/** An answer whose length the client leaves open, and the most that is set aside for one that may be long. */
const defaultAnswerTokens = 500
const maxAnswerTokens = 4_000

const lengthFields = ["max_completion_tokens", "max_tokens", "max_output_tokens"]

const isCount = (value: unknown): value is number => typeof value === "number" && value > 0

const answerTokens = (body: Uint8Array): number => {
  const members = JsonText.members(body) ?? []
  for (const name of lengthFields) {
    const value = JsonText.valueOf(body, members, name)
    if (isCount(value)) return Math.min(value, maxAnswerTokens)
  }
  const config = JsonText.valueOf(body, members, "generationConfig")
  const value = Predicate.hasProperty(config, "maxOutputTokens") ? config["maxOutputTokens"] : undefined
  return isCount(value) ? Math.min(value, maxAnswerTokens) : defaultAnswerTokens
}

/** At least 1. */
export const of = ({ body, operation }: { readonly body: Uint8Array; readonly operation: Operation }): number =>
  Math.max(1, Math.min(Math.ceil(body.length / bytesPerToken), maxRequestTokens)) +
  (operation.workloads.includes("chat") ? Math.ceil(answerTokens(body)) : 0)
